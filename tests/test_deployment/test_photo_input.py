# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Preprocessing in an ONNX graph."""

import runpy

import numpy as np
import pytest
import torch
from tiny_export import INFER

from mmclca.deployment import Preprocessing, add_preprocessing, load_onnx

onnx = pytest.importorskip('onnx', reason='extra deploy')
IDENTITY = """<ir_version: 9, opset_import: ["" : 18]>
m (float[batch, 3, height, width] images) => (float[b, c, h, w] logits) {
    logits = Identity(images)
}"""
RESIZE = dict(type='Resize', width=45, height=52)
EDGE = dict(type='ResizeEdge', scale=37)
CROP = dict(type='CenterCrop', width=31, height=30)
KINDS = [
    dict(backend=backend, interpolation=interpolation)
    for backend in ('pillow', 'cv2')
    for interpolation in ('bilinear', 'bicubic')
]


@pytest.mark.parametrize('kind', KINDS, ids=str)
@pytest.mark.parametrize('steps', [[RESIZE], [EDGE, CROP]], ids=str)
def test_graph_prepares_photos_as_the_libraries_do(steps, kind, tmp_path):
    steps = [step if step is CROP else step | kind for step in steps]
    path, prepare = tmp_path / 'a.onnx', runpy.run_path(str(INFER))['prepare']
    for order, shape in (('RGB', (61, 83)), ('BGR', (403, 300))):
        given = steps, order, [1.0, 2.5, 3.0], [1.0, 0.5, 2.0]
        onnx.save(onnx.parser.parse_model(IDENTITY), path)
        add_preprocessing(path, Preprocessing(*given, (0, 0)))
        onnx.checker.check_model(str(path))
        photo = torch.randint(0, 256, (*shape, 3), dtype=torch.uint8)
        found = load_onnx(path)(photo)[0].numpy()
        size = found.shape[1:]
        expected = prepare(photo.numpy()[..., ::-1], *given, size)
        levels = np.abs(found - expected) * np.reshape(given[3], (3, 1, 1))
        # OpenCV interpolates with 11 bits
        share = 0.2 if kind == KINDS[2] else 0.01
        assert levels.max() <= 1 and (levels > 0).mean() < share


def test_resizing_without_an_operator_is_refused(tmp_path):
    onnx.save(onnx.parser.parse_model(IDENTITY), tmp_path / 'a.onnx')
    step = dict(RESIZE, backend='cv2', interpolation='area')
    given = Preprocessing([step], 'RGB', [0] * 3, [1] * 3, (52, 45))
    with pytest.raises(ValueError, match='cv2 area'):
        add_preprocessing(tmp_path / 'a.onnx', given)
