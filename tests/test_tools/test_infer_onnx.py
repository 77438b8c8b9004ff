# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import runpy
import subprocess
import sys

import numpy as np
import onnx
import pytest
from mmengine.dataset import Compose
from mmengine.registry import DefaultScope
from PIL import Image
from tiny_export import EXPORT, INFER, write_model
from tiny_run import CLASSES, environment, run_tool

from mmclca.apis import TokenReductionInferencer
from mmclca.registry import TRANSFORMS

BLOCK = """
import sys
for name in ('torch', 'mmcv', 'mmengine', 'mmpretrain', 'mmclca', 'timm'):
    sys.modules[name] = None
"""


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Holds images, tiny.py, tiny.pth and tiny.onnx."""
    folder = tmp_path_factory.mktemp('export')
    config, checkpoint, _ = write_model(folder)
    with pytest.MonkeyPatch.context() as patch:
        run_tool(patch, EXPORT, config, checkpoint)
    return folder


@pytest.fixture
def infer(tmp_path):
    """Runs the script where there is no torch and nothing of OpenMMLab."""
    blocker = tmp_path / 'block'
    blocker.mkdir()
    (blocker / 'sitecustomize.py').write_text(BLOCK)
    env = environment()
    env['PYTHONPATH'] = str(blocker)

    def infer(*arguments):
        return subprocess.run(
            [sys.executable, str(INFER), *map(str, arguments)],
            env=env,
            text=True,
            capture_output=True,
        )

    return infer


def test_answers_are_those_of_pytorch(folder, infer, tmp_path):
    out = tmp_path / 'new' / 'results.csv'
    run = infer(
        *(folder / 'tiny.onnx', folder / 'data', '--csv', out),
        *('--top', 9, '--threads', 1),
    )
    assert (run.returncode, run.stderr) == (0, '')
    header, *rows = csv.reader(out.open())
    assert header[5:8] == ['label_1', 'name_1', 'score_1']
    images = sorted(map(str, (folder / 'data').rglob('*.png')))
    assert [row[0] for row in rows] == images
    config, weights = str(folder / 'tiny.py'), str(folder / 'tiny.pth')
    expected = TokenReductionInferencer(config, weights)(images)
    for row, answer in zip(rows, expected, strict=True):
        labels = [int(label) for label in row[5:-1:3]]
        assert sorted(labels) == [0, 1, 2, 3]
        assert row[6::3] == [CLASSES[label] for label in labels]
        scores = np.float32(row[7::3])
        assert np.abs(scores - answer['pred_scores'][labels]).max() < 1e-5
        assert (np.diff(scores) <= 0).all()
    first = run.stdout.splitlines()[0]
    assert first.startswith(f'{images[0]}: {scores_of(rows[0])}')


def scores_of(row):
    return f'{float(row[7]):.3f} {row[6]}, '


def test_broken_images_are_named_and_the_others_classified(
    folder, infer, tmp_path
):
    good = folder / 'data/oak/0.png'
    leaves = tmp_path / 'leaves'
    leaves.mkdir()
    (leaves / 'a.png').write_bytes(b'')
    (leaves / 'b.JPG').write_text('no image')
    (leaves / 'c.png').write_bytes(good.read_bytes())
    (leaves / 'notes.txt').write_text('no image')
    gone = tmp_path / 'gone.png'
    run = infer(folder / 'tiny.onnx', leaves, gone, good)
    named = [line.split(': ')[0] for line in run.stdout.splitlines()]
    assert named == [str(leaves / 'c.png'), str(good)]
    bad = (leaves / 'a.png', leaves / 'b.JPG', gone)
    assert run.returncode == 1
    listed = '\n  '.join(map(str, bad))
    assert run.stderr == f'not read:\n  {listed}\n'


def test_no_image_and_a_file_of_another_tool(folder, infer, tmp_path):
    run = infer(folder / 'tiny.onnx', tmp_path)
    assert run.returncode == 2 and 'no image (.png' in run.stderr
    file = onnx.load(folder / 'tiny.onnx')
    file.ClearField('metadata_props')
    onnx.save(file, tmp_path / 'other.onnx')
    run = infer(tmp_path / 'other.onnx', folder / 'data')
    assert run.returncode == 2
    assert 'does not say its preparation and classes' in run.stderr
    run = infer(folder / 'tiny.onnx', folder / 'data', '--top', 0)
    assert '--top is 1 or more' in run.stderr
    run = infer(tmp_path / 'gone.onnx', folder / 'data')
    assert 'gone.onnx: no such file' in run.stderr
    run = infer(folder / 'tiny.onnx', folder / 'data', '--csv', tmp_path)
    assert f'--csv {tmp_path}: Is a directory' in run.stderr
    file = onnx.load(folder / 'tiny.onnx')
    for weight in file.graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT:
            huge = onnx.numpy_helper.to_array(weight) * np.float32(1e30)
            weight.CopyFrom(onnx.numpy_helper.from_array(huge, weight.name))
    onnx.save(file, tmp_path / 'huge.onnx')
    run = infer(tmp_path / 'huge.onnx', folder / 'data')
    assert run.returncode == 2 and 'no finite scores' in run.stderr
    run = infer(folder / 'tiny.pth', folder / 'data')
    assert 'tiny.pth is no ONNX file that can be read' in run.stderr
    assert 'Traceback' not in run.stderr
    assert run.stdout == ''


def words(step):
    """The step as mmcv has it."""
    if step['type'] == 'Resize':
        step = dict(step, scale=(step.pop('width'), step.pop('height')))
    elif step['type'] == 'CenterCrop':
        size = step['width'], step['height']
        step = dict(type='CenterCrop', crop_size=size)
    return step


RESIZE = dict(type='Resize', width=45, height=52)


@pytest.mark.parametrize(
    'step',
    [
        dict(RESIZE, backend='pillow', interpolation='bicubic'),
        dict(RESIZE, backend='pillow', interpolation='lanczos'),
        dict(RESIZE, backend='cv2', interpolation='bicubic'),
        dict(RESIZE, backend='cv2', interpolation='area'),
        dict(
            type='ResizeEdge', scale=37, backend='cv2', interpolation='nearest'
        ),
        dict(type='CenterCrop', width=31, height=30),
        dict(type='CenterCrop', width=30, height=31),
    ],
    ids=str,
)
@pytest.mark.parametrize('shape', [(61, 83), (83, 60)], ids=str)
def test_pixels_are_those_of_mmcv(step, shape, tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (*shape, 3), np.uint8)
    path = tmp_path / 'leaf.jpg'
    Image.fromarray(noise).save(path)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        steps = (dict(type='LoadImageFromFile'), words(dict(step)))
        pipeline = Compose([TRANSFORMS.build(config) for config in steps])
    expected = pipeline(dict(img_path=str(path)))['img']
    script = runpy.run_path(str(INFER))
    found = script['prepare'](
        script['read'](path),
        [step],
        'RGB',
        [100, 110, 120.5],
        [10, 20, 57.375],
        expected.shape[:2],
    )
    expected = expected[..., ::-1].astype(np.float32)
    expected = (expected - np.float32([100, 110, 120.5])) / np.float32(
        [10, 20, 57.375]
    )
    assert np.array_equal(found, expected.transpose(2, 0, 1))
