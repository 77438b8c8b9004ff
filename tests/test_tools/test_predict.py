# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.runner import save_checkpoint
from mmpretrain import get_model
from PIL import Image
from tiny_model import write_tiny
from tiny_run import CLASSES, ROOT, exit_code, run_tool

from mmclca.apis import TokenReductionInferencer

TOOL = ROOT / 'tools/predict.py'


@pytest.fixture
def model(tmp_path):
    """Its data, config and checkpoints are in the folder of the test."""
    return write_tiny(tmp_path)


@pytest.fixture
def checkpoint(tmp_path, model):
    return tmp_path / 'tiny.pth'


@pytest.fixture
def predict(monkeypatch, capsys):
    """Runs the tool in this process; what it prints on stdout, stderr."""

    def predict(*arguments):
        run_tool(monkeypatch, TOOL, *arguments)
        return capsys.readouterr()

    return predict


def test_folder_in_batches(checkpoint, predict, tmp_path):
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
        said = f'{one["image"]}: {top["score"]:.3f} {top["name"]}'
        assert line.startswith(said)


def test_tokens_and_maps_beside_the_classes(checkpoint, predict, tmp_path):
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


def test_config_in_the_checkpoint_and_another_one(
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
    with pytest.raises(SystemExit, match='bare.pth holds no config: give'):
        predict(bare, image)
    labels = predict(bare, image, *given).out.split()[2::2]
    assert sorted(label.strip(',') for label in labels) == list('0123')


def test_unreadable_images_are_skipped_and_reported(
    checkpoint, predict, tmp_path, capsys
):
    data, out = tmp_path / 'data', tmp_path / 'results.csv'
    (data / 'oak' / '0.png').write_bytes(b'')
    (data / 'ash' / '1.png').write_text('no image')
    options = ('--batch-size', 1, '--out', out, '--pictures', tmp_path / 'p')
    with pytest.raises(SystemExit) as end:
        predict(checkpoint, data, tmp_path / 'gone.png', *options)
    lines = str(end.value).split('\n  ')
    assert lines[0] == 'not read:'
    text = f"{data / 'ash/1.png'}: no image: it begins with b'no image'"
    gone = f'{tmp_path / "gone.png"}: no such file or folder'
    assert lines[1:] == [text, f'{data / "oak/0.png"}: empty file', gone]
    assert len(capsys.readouterr().out.splitlines()) == 14
    errors = [row['error'] for row in csv.DictReader(out.open())]
    assert len(errors) == 17
    assert [i for i, error in enumerate(errors) if error] == [1, 12, 16]
    assert len([*(tmp_path / 'p').rglob('*.png')]) == 14


def test_pictures_in_folders_as_those_of_the_images(
    checkpoint, predict, tmp_path
):
    data, pictures = tmp_path / 'data', tmp_path / 'new/pictures'
    predict(checkpoint, data, '--pictures', pictures)
    images = sorted(path.relative_to(data) for path in data.rglob('*.png'))
    drawn = sorted(path.relative_to(pictures) for path in pictures.rglob('*'))
    assert [path for path in drawn if path.suffix] == images
    picture = np.asarray(Image.open(pictures / 'oak/0.png').convert('RGB'))
    height, width, _ = picture.shape
    assert 350 < width < 600 and 200 < height < 400  # two panels and a legend
    assert picture.std(axis=(0, 1)).min() > 20
    assert len({one.read_bytes() for one in pictures.glob('oak/*')}) == 4
    with pytest.raises(SystemExit, match='would lie among images, in .*/ash'):
        predict(checkpoint, data, '--pictures', data)
    option = ('--cfg-options', 'model.backbone.reducer=None')
    with pytest.raises(SystemExit, match='there are no stages to draw'):
        predict(checkpoint, data, '--pictures', pictures, *option)


def test_tokens_of_a_plain_vit(model, predict, tmp_path):
    cfg = Config.fromfile(tmp_path / 'tiny.py')
    cfg.model.backbone = dict(
        type='VisionTransformer',
        arch=cfg.model.backbone.arch,
        img_size=cfg.model.backbone.img_size,
        patch_size=cfg.model.backbone.patch_size,
    )
    cfg.model.head = dict(
        type='VisionTransformerClsHead',
        num_classes=4,
        in_channels=cfg.model.head.in_channels,
    )
    cfg.model.type = 'ImageClassifier'
    model = get_model(cfg, pretrained=False)
    meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=CLASSES))
    plain = tmp_path / 'plain_vit.pth'
    save_checkpoint(dict(meta=meta, state_dict=model.state_dict()), str(plain))
    out = tmp_path / 'x.json'
    predict(plain, tmp_path / 'data', '--tokens', '--out', out)
    first = json.loads(out.read_text())[0]
    assert first['tokens'] == [17] * 3 and first['kept'] == []


def test_scores_that_are_not_finite(checkpoint, predict, tmp_path):
    state = torch.load(checkpoint, weights_only=True)
    for name in ('head.fc.weight', 'backbone.ln1.weight'):
        state['state_dict'][name] *= 1e38
    torch.save(state, checkpoint)
    with pytest.raises(SystemExit, match='no finite numbers for 1 of 1'):
        predict(checkpoint, tmp_path / 'data/oak/0.png')


@pytest.mark.parametrize(
    'words, message',
    [
        ('best.pth leaf.png --out x.txt', 'must end in .csv or .json'),
        ('best.pth leaf.png --topk 0', '--topk: 0: at least 1'),
        ('best.pth leaf.png --tokens', '--tokens needs --out'),
        (
            'run/best_1.pth run/best_9.pth new_leaves',
            '2 checkpoints: run/best_1.pth run/best_9.pth',
        ),
        (
            'run/tiny.py best.pth leaves/ more/',
            'the checkpoint comes first, and holds the config: predict.py '
            'best.pth leaves/ more/. For another config: predict.py best.pth '
            'leaves/ more/ --config run/tiny.py',
        ),
        ('run/tiny.py best.pth', 'predict.py best.pth IMAGES'),
        ('tiny.pth empty', ') in empty'),
    ],
)
def test_mistakes(words, message, checkpoint, predict, monkeypatch, capsys):
    monkeypatch.chdir(checkpoint.parent)
    Path('empty').mkdir()
    assert exit_code(predict, *words.split()) == 2
    assert message in ' '.join(capsys.readouterr().err.split())
