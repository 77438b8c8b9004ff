# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Web app with a small model: classifies a photo by its mean color."""

import json

import numpy as np
import onnx

from mmclca.deployment import ModelTitle, Rate, write_web_app

CLASSES = ['red', 'green', 'blue', '<b>äsh</b>', '=maple', 'oak, "old"']
GRAPH = """<ir_version: 8, opset_import: ["" : 18]>
colors (uint8[h, w, 3] photo) => (float[1, 6] logits)
<int64[1] side = {0}, float[3, 6] weight = {WEIGHT}> {
  pixels = Cast <to = 1> (photo)
  columns = ReduceMean <keepdims = 0> (pixels, side)
  row = ReduceMean(columns, side)
  logits = MatMul(row, weight)
}"""


def write_small_app(folder, seed=0, sure=None, class_photos=()):
    """Write the app to ``folder/web``, ``sure`` is for prediction sets."""
    weight = np.random.default_rng(seed).normal(scale=0.05, size=18)
    numbers = ', '.join(map(str, weight.tolist()))
    file = onnx.parser.parse_model(GRAPH.replace('WEIGHT', numbers))
    facts = dict(classes=CLASSES, threshold=None, sure=sure)
    facts = {key: json.dumps(fact) for key, fact in facts.items()}
    onnx.helper.set_model_props(file, facts)
    onnx.save(file, folder / 'model.onnx')
    title = ModelTitle('Übung', Rate(0.96, 0.9, 0.99), 'sessions')
    write_web_app(folder / 'web', folder / 'model.onnx', title, class_photos)
    return folder / 'web'
