# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classes told by the border or the file."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from report_folder import CLASSES, write_folder
from tiny_model import write_tiny

import mmclca
from mmclca.apis import TokenReductionInferencer
from mmclca.datasets.photos import LabeledImages
from mmclca.datasets.photos.captures import Capture
from mmclca.fitting import ignored_patches, shortcuts
from mmclca.fitting.console_text import result_lines
from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.record import FitRecord
from mmclca.fitting.report import write_report
from mmclca.fitting.shortcut_record import Shortcut
from mmclca.models.recording import AttentionRecorder, recording_copy

TONES = dict(ash=40, elm=120, oak=220)


@pytest.fixture
def photos(tmp_path):
    """Write random photos with a border in the tone for their class."""
    random = np.random.RandomState(0)
    for name, tone in TONES.items():
        (tmp_path / 'photographs' / name).mkdir(parents=True)
        for number in range(8):
            pixels = np.full((64, 64, 3), tone + random.randint(9), np.uint8)
            inside = random.randint(0, 256, (40, 40, 3), np.uint8)
            pixels[12:-12, 12:-12] = inside
            file = tmp_path / 'photographs' / name / f'{number}.png'
            Image.fromarray(pixels).save(file)
    return tmp_path / 'photographs'


@pytest.mark.slow
def test_fit_warns_of_a_background_that_goes_with_the_class(
    photos, place, tmp_path, capsys
):
    model = mmclca.fit(
        photos,
        tmp_path / 'model',
        weights=place / 'tiny.safetensors',
        runtime='pytorch',
        budget='0.02GMACs',
        probe_only=True,
    )
    border = next(
        x for x in model.facts['shortcuts'] if x['source'] == 'border'
    )
    assert border['accuracy'] > 0.9 > border['highest']
    assert border['extremes'] == ['ash', 'oak']
    sources = [x['source'] for x in model.facts['shortcuts']]
    assert sources == ['border', 'patches']
    printed = capsys.readouterr().out
    assert 'from the border alone, 100% of photos' in printed
    report = (model.folder / 'report.html').read_text()
    section = report.partition('id="shortcuts"')[2].partition('</section>')[0]
    assert section.count('<img') == 6
    assert section.count('same background') == 1


def test_record_without_shortcuts_is_read(copy):
    record = json.loads((copy.folder / 'fit.json').read_text())
    for key in ('shortcuts', 'checksum'):
        record.pop(key, None)
    record = {k: v for k, v in record.items() if k in copy.facts}
    assert FitRecord.from_json(record).shortcuts == []
    assert write_report(copy.folder).exists()


def make_shortcut(source, extremes):
    """Return facts about a shortcut far above chance."""
    return dict(
        source=source, accuracy=0.7, chance=0.2, highest=0.3, extremes=extremes
    )


@pytest.mark.parametrize(
    'sources, remedies, num_pairs',
    [
        (['border'], ['background'], 1),
        (['border', 'patches'], ['background'], 1),
        (
            ['border', 'patches', 'file'],
            ['background', 'camera and settings'],
            2,
        ),
    ],
)
def test_shortcuts_are_listed_before_their_common_advice(
    sources, remedies, num_pairs, tmp_path
):
    pairs = [CLASSES[:2], CLASSES[1::-1], CLASSES[1:3]]
    facts = map(make_shortcut, sources, pairs)
    folder = write_folder(tmp_path, shortcuts=[*facts])
    record = FitFolder(folder).read_complete()
    lines = [*result_lines(record, is_console=True)]
    first = next(i for i, x in enumerate(lines) if x.startswith('Warning'))
    end = first + len(sources)
    assert all(x.startswith('Warning') for x in lines[first:end])
    for line, remedy in zip(lines[end:], remedies, strict=False):
        assert line.startswith('  ') and remedy in line
    assert 'by place (--groups)' in lines[end + len(remedies)]
    report = write_report(folder).read_text()
    section = report.partition('id="shortcuts"')[2].partition('</section>')[0]
    assert section.count('<article') == num_pairs
    assert section.count('in front of the same background') == 1
    assert section.count('by place') == 1


def test_shortcut_is_far_above_chance_if_it_explains_much():
    shortcut = Shortcut('border', accuracy=0.6, chance=0.25, highest=0.3)
    assert shortcut.is_far_above_chance(0.9)
    assert not shortcut.is_far_above_chance(None)
    weak = Shortcut('border', accuracy=0.4, chance=0.25, highest=0.3)
    assert not weak.is_far_above_chance(0.9)
    random = Shortcut('border', accuracy=0.6, chance=0.25, highest=0.6)
    assert not random.is_far_above_chance(0.9)


def test_cameras_days_and_sizes_are_columns_of_numbers():
    rows = [[1.0, 'A'], [2.0, 'B'], [], [3.0, 'A']]
    encoded = shortcuts.encode(rows)
    expected = [[1, 1, 0], [2, 0, 1], [2, 0, 0], [3, 1, 0]]
    assert encoded.tolist() == expected


def test_camera_that_goes_with_the_class_is_noticed(photos):
    paths = sorted(map(str, photos.rglob('*.png')))
    names = [path.split('/')[-2] for path in paths]
    images = LabeledImages.from_names(paths, names, 'photos')
    for path, name in zip(paths, names, strict=True):
        images.captures[path] = Capture(camera=f'camera of {name}')
    every = np.arange(24)
    splits = [
        (every[every % 3 != fold], every[every % 3 == fold])
        for fold in range(3)
    ]
    probed = shortcuts.probe_photos(images, torch.arange(24), splits)
    assert {x.source for x in probed if x.is_far_above_chance(1.0)} == {
        'border',
        'file',
    }


def test_colors_are_those_of_the_patches_with_least_attention():
    images = torch.zeros(1, 3, 8, 8)
    images[0, 0, :4, 4:] = 5.0  # the second of four patches
    attention = torch.tensor([[0.4, 0.1, 0.2, 0.3]])
    (row,) = ignored_patches.describe_colors(images, attention)
    red = [5.0] * 4 + [0.0]  # three quantiles, mean and deviation
    assert row[::3] == red and not any(row[1::3]) and not any(row[2::3])


def test_recorded_attention_is_that_of_cls_in_the_last_layer(tmp_path):
    torch.manual_seed(0)
    write_tiny(tmp_path, reducer=None, reduce_at=(), cache=None)
    inferencer = TokenReductionInferencer(tmp_path / 'tiny.pth')
    images = torch.randn(2, 3, 32, 32)
    records = recording_copy(inferencer.model, AttentionRecorder).backbone
    records.forward_tokens(images)
    last = recording_copy(
        inferencer.model, ignored_patches.LastAttention
    ).backbone
    last.forward_tokens(images)
    expected = records.recorder.layers[-1].attn[:, 0, 1:]
    torch.testing.assert_close(last.recorder.attention, expected)


def test_unreadable_photos_have_no_facts(tmp_path):
    file = tmp_path / 'broken.jpg'
    file.write_bytes(b'\xff\xd8 broken')
    assert shortcuts.read_border(str(file)) == []
    assert shortcuts.read_border(str(tmp_path / 'gone.jpg')) == []
    cues = shortcuts.read_file_cues(str(file), Capture('2024-05-06'))
    assert cues == [0, 0, 0, '', '2024-05-06']
