# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run examples/ with small weights and no downloads."""

import re
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient
from tiny_photos import write_photos, write_weights
from tiny_run import ROOT, environment

NOTEBOOKS = sorted(ROOT.glob('examples/*.ipynb'))
MAX_OUTPUT = 100_000  # bytes


@pytest.mark.slow
@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv('PYTHONPATH', str(ROOT))
    book = nbformat.read(path, 4)
    weights = str(write_weights(tmp_path))
    for cell in book.cells:
        source = re.sub(
            r'(?m)^weights = .*', f'weights = {weights!r}', cell.source
        )
        cell.source = source.replace('pretrained = True', 'pretrained = False')
    resources = dict(metadata=dict(path=tmp_path))
    NotebookClient(book, timeout=600, resources=resources).execute()
    outputs = [cell.get('outputs') for cell in book.cells]
    assert 'error:' not in str(outputs)  # of commands


@pytest.mark.slow
def test_timm_model_is_finetuned_in_a_plain_loop(tmp_path):
    photos = write_photos(tmp_path)
    more = '--random-weights', '--epochs', '2'
    script = ROOT / 'examples/timm_finetune.py'
    done = subprocess.run(
        [sys.executable, script, photos, *more],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.count('loss') == 2
    assert (tmp_path / 'finetuned.pth').is_file()


@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_small(path):
    for cell in nbformat.read(path, 4).cells:
        stored = str(cell.get('outputs', ''))
        assert len(stored.encode()) < MAX_OUTPUT
