# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Efficiency of the models of fit with one photo at a time."""

import json

import numpy as np
import one_photo
import pytest
from installed import NEEDS_COMPILER
from PIL import Image
from tiny_photos import write_weights
from tiny_run import ROOT, run_tool


def test_efficiency_divides_speed_up_by_ratio_of_gmacs():
    keys = ('layers', None), ('layers', 'ATC')
    times, gmacs = (
        dict(zip(keys, x, strict=True)) for x in ((20, 10), (1, 0.4))
    )
    full, reduced = one_photo.make_rows('ONNX', times, gmacs)
    assert full['efficiency'] == 1
    assert reduced['efficiency'] == pytest.approx(0.8)


@NEEDS_COMPILER
@pytest.mark.slow
def test_models_of_fit_are_timed_on_photos(tmp_path, monkeypatch):
    image, out = tmp_path / 'photo.png', tmp_path / 'times.json'
    Image.fromarray(np.zeros((64, 64, 3), np.uint8)).save(image)
    tool = ROOT / 'tools/research/one_photo.py'
    given = '--weights', write_weights(tmp_path), '--photos', image
    given += '--runtimes', 'ONNX', '--heads', 'layers', '--rounds', 1
    run_tool(monkeypatch, tool, *given, '--out', out)
    found = json.loads(out.read_text())['results']
    assert {x['method'] for x in found} == {'full ViT', 'ATC', 'DiffRate'}
    assert all(x['ms'] > 0 for x in found)
