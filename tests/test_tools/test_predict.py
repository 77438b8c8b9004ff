# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import json
import runpy
import sys

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.runner import save_checkpoint
from mmpretrain import get_model
from PIL import Image
from tiny_run import CLASSES, ROOT, write_run

from mmclca.apis import load_inferencer

TOOL = ROOT / 'tools/predict.py'


@pytest.fixture
def config(tmp_path):
    return write_run(tmp_path)


@pytest.fixture
def model(config):
    return get_model(str(config), pretrained=False)


@pytest.fixture
def checkpoint(tmp_path, model):
    meta = dict(dataset_meta=dict(classes=CLASSES))
    state = dict(meta=meta, state_dict=model.state_dict())
    save_checkpoint(state, str(tmp_path / 'tiny.pth'))
    return tmp_path / 'tiny.pth'


@pytest.fixture
def predict(monkeypatch, capsys):
    """Runs the tool in this process; what it prints on stdout, stderr."""

    def predict(*arguments):
        monkeypatch.setattr(sys, 'argv', ['predict.py', *map(str, arguments)])
        runpy.run_path(str(TOOL), run_name='__main__')
        return capsys.readouterr()

    return predict


@torch.no_grad()
def scores_of(model, path):
    """By hand: load, resize, BGR as the config has it, softmax."""
    image = np.asarray(Image.open(path).convert('RGB'))[..., ::-1]
    image = (torch.tensor(image.copy()).permute(2, 0, 1) - 127.5) / 127.5
    return model.eval()(image[None]).softmax(-1)[0]


def test_folder_in_batches(config, checkpoint, model, predict, tmp_path):
    out = tmp_path / 'new' / 'results.json'
    data = tmp_path / 'data'
    printed = predict(
        config, checkpoint, data, '--batch-size', 3, '--topk', 2, '--out', out
    )
    results = json.loads(out.read_text())
    images = sorted(map(str, data.rglob('*.png')))
    assert [result['image'] for result in results] == images
    for result in results:
        expected = scores_of(model, result['image'])
        first, second = result['classes']
        assert first['label'] == expected.argmax()
        assert first['name'] == CLASSES[first['label']]
        assert first['score'] >= second['score']
        for c in (first, second):
            assert abs(c['score'] - expected[c['label']]) < 1e-5
    lines = printed.out.splitlines()
    assert len(lines) == len(images)
    top = results[0]['classes'][0]
    assert lines[0].startswith(
        f'{images[0]}: {top["score"]:.3f} {top["name"]}'
    )
    assert f'{len(images)} images' in printed.err


def test_csv_and_more_classes_asked_than_there_are(
    config, checkpoint, predict, tmp_path
):
    out = tmp_path / 'results.csv'
    image = tmp_path / 'data/oak/0.png'
    predict(config, checkpoint, image, '--topk', 9, '--out', out)
    header, row = csv.reader(out.open())
    assert header[:4] == ['image', 'label_1', 'name_1', 'score_1']
    assert len(header) == len(row) == 1 + 3 * len(CLASSES)
    assert row[0] == str(image)
    assert set(row[2::3]) == set(CLASSES)
    assert sum(map(float, row[3::3])) == pytest.approx(1, abs=1e-5)


def test_files_patterns_and_endings_each_image_once(
    config, checkpoint, predict, tmp_path
):
    leaves = tmp_path / 'leaves'
    leaves.mkdir()
    noise = np.random.default_rng(0).integers(0, 255, (20, 30, 3), np.uint8)
    for name in ('a.TIF', 'b.bmp', 'c.webp', 'd.JPG'):
        Image.fromarray(noise).save(leaves / name)
    Image.fromarray(noise[..., 0]).save(leaves / 'grey.png')
    (leaves / 'notes.txt').write_text('no image')
    places = (leaves / 'b.bmp', f'{leaves}/*.TIF', f'{tmp_path}/lea*')
    printed = predict(config, checkpoint, *places)
    named = [line.split(': ')[0] for line in printed.out.splitlines()]
    order = ('b.bmp', 'a.TIF', 'c.webp', 'd.JPG', 'grey.png')
    assert named == [str(leaves / name) for name in order]


def test_unreadable_images_are_skipped_and_reported(
    config, checkpoint, predict, tmp_path, capsys
):
    data = tmp_path / 'data'
    (data / 'oak' / '0.png').write_bytes(b'')
    (data / 'ash' / '1.png').write_text('no image')
    with pytest.raises(SystemExit) as end:
        predict(
            config, checkpoint, data, tmp_path / 'gone.png', '--batch-size', 1
        )
    bad = [data / 'ash/1.png', data / 'oak/0.png', tmp_path / 'gone.png']
    why = ('no image', 'no image', 'no such file or folder')
    listed = [f'\n  {path}: {w}' for path, w in zip(bad, why, strict=True)]
    assert str(end.value) == f'not read:{"".join(listed)}'
    assert len(capsys.readouterr().out.splitlines()) == 14


def test_config_without_test_images(checkpoint, predict, config, tmp_path):
    option = ('--cfg-options', 'test_dataloader=None')
    with pytest.raises(ValueError, match='tiny.py has no test_dataloader'):
        predict(config, checkpoint, tmp_path / 'data', *option)
    with pytest.raises(ValueError, match='no model and no test_dataloader'):
        load_inferencer(Config({}), str(checkpoint))


def test_class_names_of_the_config(config, model, predict, tmp_path):
    plain = tmp_path / 'plain.pth'
    torch.save(model.state_dict(), plain)
    image = tmp_path / 'data/oak/0.png'
    labels = predict(config, plain, image).out.split()[2::2]
    assert sorted(label.strip(',') for label in labels) == list('0123')
    names = tmp_path / 'classes.txt'
    names.write_text('\n'.join(CLASSES))
    option = f'test_dataloader.dataset.classes={names}'
    printed = predict(config, plain, image, '--cfg-options', option)
    assert all(name in printed.out for name in CLASSES)


def test_checkpoint_of_another_model(config, checkpoint, predict, tmp_path):
    image = tmp_path / 'data/oak/0.png'
    with pytest.raises(ValueError, match='4 class names for a head of 6'):
        cfg = Config.fromfile(config)
        cfg.model.head.num_classes = 6
        other = get_model(cfg, pretrained=False)
        meta = dict(dataset_meta=dict(classes=CLASSES))
        state = dict(meta=meta, state_dict=other.state_dict())
        save_checkpoint(state, str(tmp_path / 'six.pth'))
        option = 'model.head.num_classes=6'
        predict(config, tmp_path / 'six.pth', image, '--cfg-options', option)
    with pytest.raises(ValueError, match='lacks 2 parameters of the model'):
        option = 'model.head.num_classes=6'
        predict(config, checkpoint, image, '--cfg-options', option)


@pytest.mark.parametrize(
    'arguments, message',
    [
        (['--out', 'x.txt'], 'must end in .csv or .json'),
        (['--topk', '0'], 'must be 1 or more'),
    ],
)
def test_arguments_not_allowed(arguments, message, predict, capsys):
    with pytest.raises(SystemExit):
        predict('config.py', 'checkpoint.pth', 'image.png', *arguments)
    assert message in capsys.readouterr().err


def test_empty_folder(config, checkpoint, predict, tmp_path):
    (tmp_path / 'empty').mkdir()
    with pytest.raises(SystemExit, match='no image .*tif.* in .*empty'):
        predict(config, checkpoint, tmp_path / 'empty')
