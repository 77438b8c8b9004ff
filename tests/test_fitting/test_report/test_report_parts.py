# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parts of the report: chart, numbers, patches and thumbnails."""

import re
from dataclasses import replace

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tiny_model import write_tiny

from mmclca.apis.probe import CurvePoint, forecast
from mmclca.checkpoints.gate.photo_table import PhotoFiles, PhotoRow
from mmclca.fitting import wording
from mmclca.fitting.pictures import Pictures
from mmclca.fitting.report_chart import choose_curve_unit, draw_chart
from mmclca.fitting.report_patches import draw_patch_section
from mmclca.fitting.report_photos import TestedPhoto, list_added_classes


def test_chart_has_ticks_labels_and_style_sheet_colors():
    curve = [CurvePoint(1, 0.6, 0.5, 0.7), CurvePoint(20, 0.8, 0.7, 0.9)]
    drawn = draw_chart(curve, forecast(curve, 2), 'photos per class')
    texts = re.findall(r'<text[^>]*>([^<]*)<', drawn)
    assert {'1', '2', '5', '10', '20', '80%'} <= {*texts}
    assert {'photos per class', 'accuracy', 'estimate'} <= {*texts}
    assert 'var(--bar)' in drawn and '#0072b2' not in drawn


@pytest.mark.parametrize(
    'counts, grouped, unit',
    [
        ([3, 3], False, 'photos per class'),
        ([3, 4], False, 'photos per class (median)'),
        ([3, 3], True, 'groups per class (median)'),
    ],
)
def test_curve_unit_is_a_median_if_classes_differ(counts, grouped, unit):
    assert choose_curve_unit(counts, grouped) == unit


SHARES = '0% under_1% 50% over_99% 100%'
FIGURES = [
    (wording.about, (0, 0.004, 0.5, 0.996, 1), SHARES),
    (wording.out_of_hundred, (0, 0.001, 0.5, 0.999, 1), '0 1 50 99 100'),
    (wording.digits, (0.4821, 17.94, 1254), '0.482 17.9 1254'),
    (wording.duration, (11.3, 171), '11_s 2_min_51_s'),
]


@pytest.mark.parametrize('write, values, words', FIGURES)
def test_numbers_are_rounded_for_readers(write, values, words):
    written = (re.sub(r'\s', '_', str(write(value))) for value in values)
    assert ' '.join(written) == words


@pytest.fixture(scope='module')
def tested(tmp_path_factory):
    """Two correct predictions and one error."""
    path = str(tmp_path_factory.mktemp('leaf') / 'leaf.png')
    Image.new('RGB', (48, 64), 'green').save(path)
    names = [('ash', 'ash'), ('elm', 'elm'), ('oak', 'elm')]
    return [TestedPhoto(path, x, y, 0.5, 0.5) for x, y in names]


def pictures(folder, photos):
    photo_files = PhotoFiles({photo.path: 'a' for photo in photos})
    return Pictures(folder / 'pictures', photo_files)


PLAIN = dict(reducer=None, reduce_at=())


def kept_by(folder, tested, name, **options):
    folder = folder / f'of {name}'
    folder.mkdir()
    reducer = dict(type=f'mmclca.{name}', keep_rate=0.5)
    write_tiny(folder, **dict(reducer=reducer, cache=None) | options)
    return draw_patch_section(
        folder / 'tiny.pth', tested, pictures(folder, tested)
    )


def test_kept_patches_are_drawn_for_reduced_models(tmp_path, tested):
    given = tested, pictures(tmp_path, tested)
    assert draw_patch_section(tmp_path / 'tiny.pth', *given) is None
    assert kept_by(tmp_path, tested, '', **PLAIN) is None
    found = kept_by(tmp_path, tested, 'EViT', reduce_at=(0, 1))
    assert [row[0][0] for row in found.rows] == ['ash', 'elm']
    for row in found.rows:
        texts = [text.split(':')[0] for text, _ in row]
        assert texts[1:] == ['after layer 0', 'after layer 1']
        assert row[1][0].endswith('50% of patches kept')
        assert all((p['width'], p['height']) == (32, 32) for _, p in row)
    assert [look.label[:5] for look in found.legend] == ['kept,', 'fused']
    assert not found.merges and not found.drops
    found = kept_by(tmp_path, tested, 'DiffRate', reduce_at=(1,))
    assert found.merges and found.drops
    found = kept_by(tmp_path, tested, 'PatchMerger', reduce_at=(1,))
    (look,) = found.legend
    assert look.label.startswith('mixed')
    assert look.fill.startswith('linear-gradient(90deg, #000004')


def test_thumbnail_is_a_small_copy_in_the_folder(tmp_path):
    path = str(tmp_path / 'leaf.tif')
    Image.new('CMYK', (400, 200), 200).save(path)
    listed = PhotoFiles.from_rows([PhotoRow(path, 'oak', sha256='a')])
    reader = Pictures(tmp_path / 'model/pictures.safetensors', listed)
    assert reader.thumbnail(path, 'a leaf') == dict(src='', alt='a leaf')
    writer = replace(reader, photo_files=listed.confirm([path]))
    found = writer.thumbnail(path, 'a leaf')
    writer.save()
    assert found['src'] and found['alt'] == 'a leaf'
    assert (found['width'], found['height']) == (160, 80)
    assert replace(reader).thumbnail(path, 'a leaf') == found


def test_copy_of_a_wrong_type_is_not_shown(tmp_path):
    file, sha256 = tmp_path / 'pictures.safetensors', 'a' * 64
    save_file({f'{sha256}.jpg': torch.zeros(9, dtype=torch.bfloat16)}, file)
    listed = PhotoFiles.from_rows([PhotoRow('/a.png', 'oak', sha256=sha256)])
    shown = Pictures(file, listed).thumbnail('/a.png', 'an oak')
    assert shown == dict(src='', alt='an oak')


def test_added_classes_have_photos_outside_the_sources():
    used = [
        PhotoRow('/a/photos/oak/1.jpg', 'oak'),
        PhotoRow('/a/photos2/elm/1.jpg', 'elm'),
    ]
    assert list_added_classes(used, '/a/photos') == ['elm']
    assert not list_added_classes(used, None)
    sources = '/a/photos2/labels.CSV', '/a/photos'
    assert not list_added_classes(used, *sources)
    more = [*used, PhotoRow('/b/ash/1.jpg', 'ash')]
    assert list_added_classes(more, *sources) == ['ash']
    assert not list_added_classes(used, '/c/labels.xlsx', '/c')
