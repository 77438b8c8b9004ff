# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A fit to twelve synthetic leaves reproduces stored facts."""

import json
import os
import sys

import numpy as np
import parity
import pytest
from golden import golden, without_folder
from PIL import Image
from safetensors.torch import load_file, save_file
from tiny_photos import write_weights

import mmclca
from mmclca.datasets.synthetic_leaves import draw_leaf, make_cultivars
from mmclca.fitting.options import FitOptions
from mmclca.fitting.record import FitCall

# facts about machine, versions and time
VARIES = {
    *('machine', 'table', 'versions', 'version', 'date', 'seconds'),
    *('ms', 'ms_full', 'busy', 'crc32'),
}


@pytest.fixture
def folder(tmp_path):
    """Three leaves per cultivar in photos, one in new, and weights."""
    for label, cultivar in enumerate(make_cultivars(4, difference=2)):
        for i in range(4):
            leaf = draw_leaf(cultivar, np.random.default_rng([label, i]), 112)
            place = 'photographs' if i < 3 else 'new'
            path = tmp_path / place / f'cultivar_{label}/{i}.png'
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(leaf).save(path)
    path = write_weights(tmp_path)
    shapes = {name: x.shape for name, x in load_file(path).items()}
    save_file({k: parity.draw(0, k, s) for k, s in shapes.items()}, path)
    return tmp_path


def plain(facts, folder):
    """Round facts to three digits, and mask varying ones."""
    if isinstance(facts, dict):
        return {
            name: 'VARIES' if name in VARIES else plain(value, folder)
            for name, value in facts.items()
        }
    if isinstance(facts, list):
        return [plain(value, folder) for value in facts]
    if isinstance(facts, str):
        return facts.replace(str(folder), 'FOLDER')
    return float(f'{facts:.3g}') if isinstance(facts, float) else facts


def masked(screen, folder):
    """Mask the program, paths and times; omit load and library messages."""
    omitted = 'machine busy', ' - INFO - '
    lines = [
        line
        for line in screen.splitlines()
        if not any(words in line for words in omitted)
    ]
    text = '\n'.join(lines).replace(os.path.basename(sys.executable), 'python')
    return without_folder(text, folder) + '\n'


@pytest.mark.slow
@pytest.mark.first
def test_fit_prints_and_writes_the_stored_facts(folder, no_onnx, capsys):
    weights = folder / 'tiny.safetensors'
    options = dict(weights=weights, probe_only=True, compare=True)
    photos, out = folder / 'photographs', folder / 'model'
    model = mmclca.fit(photos, out, **options)
    screen = masked(capsys.readouterr().out, folder)
    assert screen == golden('fit.txt', screen)
    logged = masked((out / 'log.txt').read_text(), folder)
    assert logged == golden('fit_log.txt', logged)
    written = json.loads((folder / 'model/fit.json').read_text())
    call = FitCall(str(folder / 'photographs'), FitOptions(**options))
    assert written['call'] == call.to_json()
    # digest of paths, and the options, whose defaults are tested elsewhere
    written['photos'] = written['call'] = 'VARIES'
    new = [*map(str, sorted((folder / 'new').rglob('*.png')))]
    found = dict(fit=written, predictions=model.predict(new))
    text = json.dumps(plain(found, folder), indent=1) + '\n'
    assert text == golden('fit.json', text)
