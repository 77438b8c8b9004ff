# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import json

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.runner import save_checkpoint
from mmpretrain import get_model
from PIL import Image
from tiny_model import write_tiny
from tiny_run import CLASSES, ROOT, run_tool

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


@torch.no_grad()
def scores_of(model, path):
    """By hand: load, resize, BGR as the config has it, softmax."""
    image = np.asarray(Image.open(path).convert('RGB'))[..., ::-1]
    image = (torch.tensor(image.copy()).permute(2, 0, 1) - 127.5) / 127.5
    return model.eval()(image[None]).softmax(-1)[0]


def test_folder_in_batches(checkpoint, model, predict, tmp_path):
    out = tmp_path / 'new' / 'results.json'
    data = tmp_path / 'data'
    printed = predict(
        checkpoint, data, '--batch-size', 3, '--topk', 2, '--out', out
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


def test_csv_and_more_classes_asked_than_there_are(
    checkpoint, predict, tmp_path
):
    out = tmp_path / 'results.csv'
    image = tmp_path / 'data/oak/0.png'
    predict(checkpoint, image, '--topk', 9, '--out', out)
    header, row = csv.reader(out.open())
    assert header[5:8] == ['label_1', 'name_1', 'score_1']
    assert len(header) == len(row) == 5 + 3 * len(CLASSES) + 1
    assert row[:3] == [str(image), row[6], row[7]] and row[3:5] == ['', '']
    assert set(row[6:-1:3]) == set(CLASSES)
    assert sum(map(float, row[7:-1:3])) == pytest.approx(1, abs=1e-5)
    assert row[-1] == ''


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


def test_form_of_earlier_versions_is_told_the_new_one(predict, capsys):
    with pytest.raises(SystemExit):
        predict('run/tiny.py', 'best.pth', 'leaves/', 'more/')
    assert (
        'the checkpoint comes first, and holds the config: predict.py '
        'best.pth leaves/ more/. For another config: predict.py best.pth '
        'leaves/ more/ --config run/tiny.py'
    ) in ' '.join(capsys.readouterr().err.split())
    with pytest.raises(SystemExit):
        predict('run/tiny.py', 'best.pth')
    assert 'predict.py best.pth IMAGES' in capsys.readouterr().err


def test_files_patterns_and_endings_each_image_once(
    checkpoint, predict, tmp_path
):
    leaves = tmp_path / 'leaves'
    leaves.mkdir()
    noise = np.random.default_rng(0).integers(0, 255, (20, 30, 3), np.uint8)
    for name in ('a.TIF', 'b.bmp', 'c.webp', 'd.JPG'):
        Image.fromarray(noise).save(leaves / name)
    Image.fromarray(noise[..., 0]).save(leaves / 'grey.png')
    (leaves / 'notes.txt').write_text('no image')
    places = (leaves / 'b.bmp', f'{leaves}/*.TIF', f'{tmp_path}/lea*')
    printed = predict(checkpoint, *places)
    named = [line.split(': ')[0] for line in printed.out.splitlines()]
    order = ('b.bmp', 'a.TIF', 'c.webp', 'd.JPG', 'grey.png')
    assert named == [str(leaves / name) for name in order]


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


def test_config_without_test_images(checkpoint, predict, tmp_path):
    option = ('--cfg-options', 'test_dataloader=None')
    with pytest.raises(SystemExit, match='the config has no test_dataloader'):
        predict(checkpoint, tmp_path / 'data', *option)


def test_class_names_of_the_config(model, predict, tmp_path):
    plain = tmp_path / 'plain.pth'
    torch.save(model.state_dict(), plain)
    names = tmp_path / 'classes.txt'
    names.write_text('\n'.join(CLASSES))
    option = f'test_dataloader.dataset.classes={names}'
    image, config = tmp_path / 'data/oak/0.png', tmp_path / 'tiny.py'
    printed = predict(
        plain, image, '--config', config, '--cfg-options', option
    )
    assert all(name in printed.out for name in CLASSES)


def test_scores_that_are_not_finite(checkpoint, predict, tmp_path):
    state = torch.load(checkpoint, weights_only=True)
    for name in ('head.fc.weight', 'backbone.ln1.weight'):
        state['state_dict'][name] *= 1e38
    torch.save(state, checkpoint)
    with pytest.raises(SystemExit, match='no finite numbers for 1 of 1'):
        predict(checkpoint, tmp_path / 'data/oak/0.png')


def test_checkpoint_of_another_model(checkpoint, predict, tmp_path):
    image, option = tmp_path / 'data/oak/0.png', 'model.head.num_classes=6'
    cfg = Config.fromfile(tmp_path / 'tiny.py')
    cfg.model.head.num_classes = 6
    other = get_model(cfg, pretrained=False)
    meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=CLASSES))
    state = dict(meta=meta, state_dict=other.state_dict())
    save_checkpoint(state, str(tmp_path / 'six.pth'))
    with pytest.raises(SystemExit, match='4 class names for a head of 6'):
        predict(tmp_path / 'six.pth', image)
    with pytest.raises(SystemExit, match='2 parameters of the model are'):
        predict(checkpoint, image, '--cfg-options', option)


@pytest.mark.parametrize(
    'arguments, message',
    [
        (['--out', 'x.txt'], 'must end in .csv or .json'),
        (['--topk', '0'], '--topk: 0: at least 1'),
        (['--tokens'], '--tokens needs --out'),
    ],
)
def test_arguments_not_allowed(arguments, message, predict, capsys):
    with pytest.raises(SystemExit):
        predict('checkpoint.pth', 'image.png', *arguments)
    assert message in capsys.readouterr().err


def test_several_checkpoints_are_refused(predict, capsys):
    with pytest.raises(SystemExit):
        predict('run/best_1.pth', 'run/best_9.pth', 'new_leaves')
    said = capsys.readouterr().err
    assert '2 checkpoints: run/best_1.pth run/best_9.pth' in said


def test_empty_folder_and_no_checkpoint(checkpoint, predict, tmp_path):
    (tmp_path / 'empty').mkdir()
    with pytest.raises(SystemExit, match='no image .*tif.* in .*empty'):
        predict(checkpoint, tmp_path / 'empty')
    with pytest.raises(SystemExit, match='there is no checkpoint gone.pth'):
        predict('gone.pth', tmp_path / 'data')
