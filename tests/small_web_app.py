# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Web app with a small model: classifies a photo by its mean color."""

import json
from zipfile import ZipFile

import cv2
import numpy as np
import onnx
import pytest

from mmclca.deployment import ModelTitle, Rate, web_app, write_web_app
from mmclca.utils.files import read_rows

NEEDS_RUNTIME = pytest.mark.skipif(
    not web_app._RUNTIME.is_file(),
    reason='no runtime: python tools/dev/fetch_web_runtime.py',
)

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


def mark(card, verdict, correction=None):
    """Mark the answer in a card."""
    card.get_by_role('button', name=verdict, exact=True).click()
    if correction is not None:
        card.get_by_label('It is').fill(correction)
        card.get_by_label('It is').press('Tab')


def download(page, button, path):
    """Press a button to export a file; return its path."""
    with page.expect_download() as download:
        page.get_by_role('button', name=button).click()
    download.value.save_as(path)
    return path


def read_list(page, folder):
    """Export the list to a folder; return its rows."""
    return read_rows(download(page, 'Export CSV', folder / 'list.csv'))


def write_other(archive, path):
    """Write the archive as if another model had exported it."""
    with ZipFile(archive) as source, ZipFile(path, 'w') as target:
        for name in source.namelist():
            content = source.read(name)
            if name == 'app.json':
                content = json.dumps(json.loads(content) | dict(classes=['x']))
            target.writestr(name, content)
    return path


def write_colors(folder, colors, hw=(60, 90)):
    """Write one photo per color; return their paths."""
    paths = [folder / f'{i}.png' for i in range(len(colors))]
    for path, color in zip(paths, colors, strict=True):
        cv2.imwrite(str(path), np.full((*hw, 3), color, np.uint8))
    return paths
