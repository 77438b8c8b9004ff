# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Export a tiny model, and use it in the standalone script."""

import csv
import json
import runpy
import subprocess
import sys
from copy import deepcopy
from functools import partial

import cv2
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from installed import NEEDS_COMPILER
from mmengine.dataset import Compose
from mmengine.registry import DefaultScope
from PIL import Image
from tiny_export import EXPORT, INFER, write_model
from tiny_run import CLASSES, environment, exit_code, load_tool, run_tool

import mmclca
from mmclca.apis import TokenReductionInferencer
from mmclca.datasets.decoding import decode
from mmclca.deployment import check_photo
from mmclca.deployment.program import noise
from mmclca.registry import TRANSFORMS

BLOCK = """
import sys
for name in ('torch', 'mmcv', 'mmengine', 'mmpretrain', 'mmclca', 'timm'):
    sys.modules[name] = None
"""


@pytest.fixture(scope='module')
def exported(exporter, tmp_path_factory):
    """Folder with images, tiny.py, tiny.pth and tiny.onnx, and the model."""
    folder = tmp_path_factory.mktemp('export')
    config, checkpoint, model = write_model(folder)
    with pytest.MonkeyPatch.context() as patch:
        run_tool(patch, EXPORT, config, checkpoint)
    return folder, model


@pytest.fixture
def folder(exported, monkeypatch):
    """The export folder as current folder."""
    monkeypatch.chdir(exported[0])
    return exported[0]


@pytest.fixture
def export(monkeypatch):
    return partial(run_tool, monkeypatch, EXPORT)


@pytest.fixture
def infer(monkeypatch, capsys):
    """Run the script; exit code, output, error output."""

    def infer(*words):
        main = load_tool(monkeypatch, INFER, *words)['main']
        return exit_code(main), *capsys.readouterr()

    return infer


def check_facts(facts):
    assert json.loads(facts['classes']) == list(CLASSES)
    assert json.loads(facts['preparation']) == dict(
        steps=[
            dict(
                type='Resize',
                width=32,
                height=32,
                backend='cv2',
                interpolation='bilinear',
            )
        ],
        channel_order='BGR',
        mean=[127.5] * 3,
        std=[127.5] * 3,
        size=[32, 32],
    )
    assert facts['method'] == 'TopK'
    assert json.loads(facts['keep_rate']) == 0.5
    assert facts['mmclca_version'] == mmclca.__version__
    assert "type='mmclca.TopK'" in facts['config']


@torch.no_grad()
def test_onnx_file_equals_pytorch_and_stores_facts(exported):
    folder, model = exported
    session = onnxruntime.InferenceSession(folder / 'tiny.onnx')
    check_facts(session.get_modelmeta().custom_metadata_map)
    photo = torch.randint(0, 256, (32, 32, 3), dtype=torch.uint8)
    (logits,) = session.run(None, dict(photo=photo.numpy()))
    x = (photo.flip(2).permute(2, 0, 1)[None] - 127.5) / 127.5
    torch.testing.assert_close(torch.tensor(logits), model(x))


def test_file_with_other_scores_is_refused(exported):
    folder, model = exported
    path = folder / 'tiny.onnx'
    assert check_photo(model, path, model._config) < 0.01
    other = deepcopy(model)
    other.data_preprocessor.mean += 128
    with pytest.raises(ValueError, match='scores'):
        check_photo(other, path, model._config)


@pytest.mark.slow
@NEEDS_COMPILER
def test_pt2_and_int8_files_have_their_own_names(export, tmp_path, capsys):
    config, checkpoint, _ = write_model(tmp_path)
    export(config, checkpoint, '--format', 'pt2')
    assert torch.export.load(tmp_path / 'tiny.pt2')
    export(config, checkpoint, '--int8', '--opset', 20, '--input', 'batch')
    said = capsys.readouterr().out
    assert 'Latency    8-bit' in said and 'not measured' in said
    session = onnxruntime.InferenceSession(tmp_path / 'tiny.int8.onnx')
    check_facts(session.get_modelmeta().custom_metadata_map)
    x = noise(4, (32, 32)).numpy()
    assert session.run(None, dict(images=x))[0].shape == (4, 4)


def test_infer_onnx_equals_inferencer_without_torch(folder, tmp_path):
    (tmp_path / 'sitecustomize.py').write_text(BLOCK)
    out = tmp_path / 'new/results.csv'
    words = 'tiny.onnx', 'data', '--out', out, '--topk', 9, '--threads', 1
    run = subprocess.run(
        [sys.executable, str(INFER), *map(str, words)],
        env=dict(environment(), PYTHONPATH=str(tmp_path)),
        text=True,
        capture_output=True,
    )
    assert (run.returncode, run.stderr) == (0, '')
    header, *rows = csv.reader(out.open())
    assert header[1:3] == ['result', 'confidence']
    assert header[7:10] == ['label_1', 'name_1', 'score_1']
    images = sorted(map(str, (folder / 'data').rglob('*.png')))
    assert [str(folder / row[0]) for row in rows] == images
    expected = TokenReductionInferencer('tiny.py', 'tiny.pth')(images)
    for row, answer in zip(rows, expected, strict=True):
        labels = [int(label) for label in row[7:-1:3]]
        assert sorted(labels) == [0, 1, 2, 3]
        assert row[8::3] == [CLASSES[label] for label in labels]
        scores = np.float32(row[9::3])
        assert np.abs(scores - answer['pred_scores'][labels]).max() < 1e-5
        assert (np.diff(scores) <= 0).all()
    first, best = run.stdout.splitlines()[0], rows[0]
    assert first.startswith(f'{best[0]}  {best[8]} {float(best[9]):.1%}  ')


def test_infer_onnx_skips_and_lists_broken_images(folder, infer, tmp_path):
    good = folder / 'data/oak/0.png'
    (tmp_path / 'a.png').write_bytes(b'')
    (tmp_path / 'b.JPG').write_text('no image')
    (tmp_path / 'c.png').write_bytes(good.read_bytes())
    (tmp_path / 'notes.txt').write_text('no image')
    code, out, err = infer('tiny.onnx', tmp_path, 'gone.png', good)
    named = [line.split('  ')[0] for line in out.splitlines()[:-1]]
    assert named == [str(tmp_path / 'c.png'), str(good)]
    passed, *lines = err.splitlines(keepends=True)
    assert '1 .txt' in passed
    bad = (tmp_path / 'a.png', tmp_path / 'b.JPG', 'gone.png')
    assert code == 1
    assert (
        ''.join(lines) == '\n  '.join(['Unreadable:', *map(str, bad)]) + '\n'
    )


@pytest.fixture(scope='module')
def others(exported):
    """Write damaged and foreign files next to tiny.onnx."""
    folder, _ = exported
    file = onnx.load(folder / 'tiny.onnx')
    for weight in file.graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT:
            huge = onnx.numpy_helper.to_array(weight) * np.float32(1e30)
            weight.CopyFrom(onnx.numpy_helper.from_array(huge, weight.name))
    onnx.save(file, folder / 'huge.onnx')
    file.ClearField('metadata_props')
    onnx.save(file, folder / 'other.onnx')
    (folder / 'empty').mkdir()
    (folder / 'e.csv').mkdir()


@pytest.mark.parametrize(
    'words, said',
    [
        ('tiny.onnx empty', 'no images in empty'),
        ('other.onnx data', 'preparation and classes and threshold'),
        ('huge.onnx data', 'not finite'),
        ('gone.onnx data', 'gone.onnx'),
        ('tiny.pth data', 'tiny.pth'),
        ('tiny.onnx data --topk 0', '--topk'),
        ('tiny.onnx data --out e.csv', '--out e.csv: Is a directory'),
        ('tiny.onnx data --out a.xlsx', '.csv'),
    ],
)
def test_infer_onnx_exits_with_one_line_if_argument_is_wrong(
    words, said, folder, others, infer
):
    code, out, err = infer(*words.split())
    assert (code, out) == (2, '') and said in err


GOOD = dict(
    steps=[dict(type='CenterCrop', width=16, height=16)],
    channel_order='RGB',
    mean=[0, 0, 0],
    std=[1, 1, 1],
    size=[16, 16],
)
GOOD_TEXT = json.dumps(GOOD)
RESIZE_TO_16 = dict(
    type='Resize', width=16, height=16, backend='cv2', interpolation='bicubic'
)
NO_CLASSES = ['[', '{}', '"four"', '["a", "b"]', '[1, 2, 3, 4]']
NO_PREPARATIONS = [
    '[' * 100_000,
    'null',
    dict(channel_order='XYZ'),
    dict(channel_order=None),
    dict(mean=[0, 0]),
    dict(mean='abc'),
    dict(mean=[float('nan'), 0, 0]),
    dict(std=[0, 1, 1]),
    dict(size=[16]),
    dict(size=[8, 8]),
    dict(size='ab'),
    dict(extra=1),
    dict(steps=None),
    dict(steps=[]),
    dict(steps=[1]),
    dict(steps=[dict(type='Rotate')]),
    dict(steps=[dict(RESIZE_TO_16, backend='none')]),
    dict(steps=[dict(RESIZE_TO_16, interpolation='none')]),
    dict(steps=[dict(RESIZE_TO_16, width=10**9)]),
    dict(steps=[dict(RESIZE_TO_16, width='16')]),
]
NO_THRESHOLDS = [
    '[1]',
    '{"score": "none", "threshold": 0.5}',
    '{"score": "energy", "threshold": "high"}',
    '{"score": "nearest", "threshold": 0.5}',
    '{"score": "energy", "threshold": NaN}',
    '{"score": "energy"}',
]


@pytest.fixture(scope='module')
def small_onnx(tmp_path_factory):
    """Write an ONNX file with metadata, and an image."""
    folder = tmp_path_factory.mktemp('small')
    make = onnx.helper
    images = make.make_tensor_value_info('images', 1, ['batch', 3, 16, 16])
    logits = make.make_tensor_value_info('logits', 1, ['batch', 4])
    shape = onnx.numpy_helper.from_array(np.array([0, -1]), 'shape')
    weight = np.random.default_rng(0).normal(size=(768, 4)).astype('f')
    weight = onnx.numpy_helper.from_array(weight, 'weight')
    nodes = [
        make.make_node('Reshape', ['images', 'shape'], ['flat']),
        make.make_node('MatMul', ['flat', 'weight'], ['logits']),
    ]
    graph = make.make_graph(nodes, 'g', [images], [logits], [shape, weight])
    opsets = [make.make_opsetid('', 18)]
    model = make.make_model(graph, opset_imports=opsets, ir_version=8)
    Image.new('RGB', (30, 20)).save(folder / 'a.png')

    def write(**facts):
        defaults = dict(
            classes='["a", "b", "c", "d"]',
            preparation=GOOD_TEXT,
            threshold='null',
        )
        facts = defaults | facts
        make.set_model_props(model, facts)
        onnx.save(model, folder / 'small.onnx')
        return folder / 'small.onnx', folder / 'a.png'

    return write


def test_infer_onnx_answers_every_file(small_onnx, infer, tmp_path):
    path, image = small_onnx()
    for name in ('a.heic', 'b.gif', 'c.psd', '.hidden.png'):
        (tmp_path / name).write_bytes(b'text')
    code, out, err = infer(path, image, tmp_path, image)
    assert code == 1 and len(out.splitlines()) == 3
    assert 'a.heic' in err and 'b.gif' in err and '1 .psd' in err


def test_infer_onnx_puts_unknown_first_if_a_photo_is_flagged(tmp_path):
    script, path = runpy.run_path(str(INFER)), tmp_path / 'a.csv'
    best, cells = ['Üzüm', 0.9], [1, 'Üzüm', 0.9]
    row = ['unknown', 0, *best, 'no', 0.7, *cells]
    assert script['describe']('a.png', row).index('unknown') < 10
    script['write'](path, [['a.png', *row, '']], 1)
    assert path.read_bytes().startswith(b'\xef\xbb\xbf')  # for Excel
    assert path.read_text('utf-8-sig').splitlines()[1].startswith('a.png,unk')


@pytest.mark.parametrize(
    'ending, channels',
    [('.tif', 1), ('.tif', 3), ('.png', 1), ('.pgm', 1), ('.ppm', 3)],
)
def test_infer_onnx_reads_pixels_as_decode_does(tmp_path, ending, channels):
    read, path = runpy.run_path(str(INFER))['read'], tmp_path / f'a{ending}'
    for bits in (10, 12, 14, 16):
        scan = np.random.default_rng(0).integers(
            0, 2**bits, (20, 30, channels), np.uint16
        )
        cv2.imwrite(str(path), scan)
        assert (read(path) == decode(path.read_bytes())).all()


@pytest.mark.parametrize(
    'facts',
    [
        *(dict(classes=text) for text in NO_CLASSES),
        *(dict(preparation=text) for text in NO_PREPARATIONS),
        *(dict(threshold=text) for text in NO_THRESHOLDS),
    ],
)
def test_infer_onnx_refuses_damaged_metadata(facts, small_onnx, infer):
    if isinstance(facts.get('preparation'), dict):
        facts = dict(preparation=json.dumps(GOOD | facts['preparation']))
    code, out, err = infer(*small_onnx(**facts))
    assert (code, out) == (2, '') and err.count('\n') == 1


def words(step):
    """Return a preprocessing step as mmcv config."""
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
        dict(RESIZE, backend='cv2', interpolation='bicubic'),
        dict(RESIZE, backend='cv2', interpolation='area'),
        dict(
            type='ResizeEdge', scale=37, backend='cv2', interpolation='nearest'
        ),
        dict(type='CenterCrop', width=31, height=30),
    ],
    ids=str,
)
@pytest.mark.parametrize('shape', [(61, 83), (83, 60)], ids=str)
def test_infer_onnx_preprocessing_equals_mmcv(step, shape, tmp_path):
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
