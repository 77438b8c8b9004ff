# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_model import write_tiny
from tiny_run import CLASSES

from mmclca.apis import TokenReductionInferencer


@pytest.fixture
def model(tmp_path):
    """Tiny model; data, config and checkpoints are in ``tmp_path``."""
    return write_tiny(tmp_path)


@pytest.fixture
def checkpoint(tmp_path, model):
    return tmp_path / 'tiny.pth'


@pytest.fixture
def predict(run):
    """Run the tool and return both output streams."""
    return partial(run, 'predict.py')


def test_batches_give_the_scores_of_the_inferencer(
    checkpoint, predict, tmp_path
):
    out, data = tmp_path / 'new' / 'results.json', tmp_path / 'data'
    words = '--batch-size', 3, '--topk', 2, '--out', out
    lines = predict(checkpoint, data, *words).out.splitlines()
    results = json.loads(out.read_text())
    wanted = TokenReductionInferencer(checkpoint, device='cpu')(data)
    for result, one, line in zip(results, wanted, lines, strict=True):
        assert result['image'] == one['image']
        best = one['pred_scores'].argsort()[:-3:-1].tolist()
        assert [c['label'] for c in result['classes']] == best
        for c in result['classes']:
            assert c['name'] == CLASSES[c['label']]
            assert abs(c['score'] - one['pred_scores'][c['label']]) < 1e-5
        top, _ = result['classes']
        said = f'{one["image"]}  {top["name"]} {top["score"]:.1%}'
        assert line.startswith(said)


def test_tokens_option_adds_counts_and_maps(checkpoint, predict, tmp_path):
    out, image = tmp_path / 'results.json', tmp_path / 'data/oak/0.png'
    predict(checkpoint, image, '--tokens', '--out', out)
    (entry,) = json.loads(out.read_text())
    inferencer = TokenReductionInferencer(checkpoint, device='cpu')
    (expected,) = inferencer(image, return_tokens=True)
    assert entry['tokens'] == expected['tokens'] == [18, 10, 12]
    assert entry['gmacs'] == expected['gmacs']
    for name in ('kept', 'attribution', 'cls_attention'):
        assert np.allclose(entry[name], expected[name], atol=1e-6)
    predict(checkpoint, image, '--tokens', '--out', tmp_path / 'results.csv')
    header, row = csv.reader((tmp_path / 'results.csv').open())
    assert row[header.index('tokens')] == '18 10 12'


def test_stored_config_is_default_and_accepts_options(
    checkpoint, model, predict, tmp_path
):
    image = tmp_path / 'data/oak/0.png'
    stored = predict(checkpoint, image).out
    assert predict(tmp_path / 'tiny.safetensors', image).out == stored
    given = ('--config', tmp_path / 'tiny.py')
    assert predict(checkpoint, image, *given).out == stored
    option = ('--cfg-options', 'model.backbone.reducer.keep_rate=0.1')
    fewer = predict(checkpoint, image, *option).out
    assert fewer != stored
    assert predict(checkpoint, image, *given, *option).out == fewer
    bare = tmp_path / 'bare.pth'
    torch.save(model.state_dict(), bare)
    labels = predict(bare, image, *given).out.split()[1::2]
    assert sorted(labels) == list('0123')


def test_unreadable_images_are_skipped_and_reported(
    checkpoint, predict, tmp_path, capsys
):
    data, out = tmp_path / 'data', tmp_path / 'results.csv'
    for name in ('beech', 'elm'):  # half is enough
        shutil.rmtree(data / name)
    (data / 'oak' / '0.png').write_bytes(b'')
    (data / 'ash' / '1.png').write_text('no image')
    options = ('--batch-size', 1, '--out', out, '--show-dir', tmp_path / 'p')
    with pytest.raises(SystemExit, match='^1$'):
        predict(checkpoint, data, tmp_path / 'gone.png', *options)
    printed = capsys.readouterr()
    *_, ash, oak, gone, summary = printed.err.splitlines()
    assert str(data / 'ash/1.png') in ash and 'no image' in ash
    assert str(data / 'oak/0.png') in oak and 'empty file' in oak
    assert str(tmp_path / 'gone.png') in gone
    assert '6 of 9' in summary and '3 unreadable' in summary
    assert len(printed.out.splitlines()) == 6
    errors = [row['error'] for row in csv.DictReader(out.open())]
    assert len(errors) == 9
    assert [i for i, error in enumerate(errors) if error] == [1, 4, 8]
    assert len([*(tmp_path / 'p').rglob('*.png')]) == 6


def test_pictures_mirror_the_image_folders(checkpoint, predict, tmp_path):
    data, pictures = tmp_path / 'data', tmp_path / 'new/pictures'
    for name in ('ash', 'beech'):  # half is enough
        shutil.rmtree(data / name)
    predict(checkpoint, data, '--show-dir', pictures)
    images = sorted(
        Path(f'{path.relative_to(data)}.png') for path in data.rglob('*.png')
    )
    drawn = sorted(path.relative_to(pictures) for path in pictures.rglob('*'))
    assert [path for path in drawn if path.suffix] == images
    assert len({one.read_bytes() for one in pictures.glob('oak/*')}) == 4


def test_tokens_option_accepts_plain_vit(predict, tmp_path):
    arch = dict(embed_dims=24, num_layers=3, num_heads=2)
    arch['feedforward_channels'] = 48
    plain = dict(type='VisionTransformer', img_size=32, patch_size=8)
    write_tiny(tmp_path, arch=arch, **plain)
    out = tmp_path / 'x.json'
    image = tmp_path / 'data/oak/0.png'
    predict(tmp_path / 'tiny.pth', image, '--tokens', '--out', out)
    first = json.loads(out.read_text())[0]
    assert first['tokens'] == [17] * 3 and first['kept'] == []
