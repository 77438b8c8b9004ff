# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run the example in docs/add_a_reducer.md."""

import re
import subprocess
import sys

import pytest
import torch
from mmpretrain.structures import DataSample
from tiny_run import ROOT, environment

DOC = (ROOT / 'docs/add_a_reducer.md').read_text()
REDUCER, CONFIG, TRACE = re.findall(r'```python\n(.*?)```', DOC, re.DOTALL)


@pytest.fixture
def files(tmp_path):
    """Folder with the files on the page."""
    config = CONFIG.replace('./configs', str(ROOT / 'configs'))
    (tmp_path / 'random_drop.py').write_text(REDUCER)
    (tmp_path / 'random_drop_leaves.py').write_text(config)
    return tmp_path


def test_example_reducer_trains_and_records_its_trace(
    files, monkeypatch, capsys
):
    monkeypatch.chdir(files)
    monkeypatch.syspath_prepend(files)
    # imported again as a user module
    monkeypatch.delitem(sys.modules, 'random_drop', raising=False)
    names = {}
    exec(TRACE, names)
    shape, *left = capsys.readouterr().out.strip().splitlines()
    # 8 x 8 patches, halved three times; then 7 cached tokens
    assert shape == 'torch.Size([1, 17, 64])'
    patches = [int(number) for number in re.findall(r'\d+', ' '.join(left))]
    assert patches == [0, 1, 9, 17, 25, 33, 41, 49, 57]
    model = names['model']
    assert type(model.backbone.reducer).__name__ == 'RandomDrop'
    assert model.backbone.reducer.keep_rates == (0.5, 0.5, 0.5)
    samples = [DataSample().set_gt_label(i) for i in range(8)]
    images = torch.randn(8, 3, 112, 112)
    model.train()(images, samples, mode='loss')['loss'].backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    assert model.backbone.cls_token.grad.any()


@pytest.mark.slow
def test_example_reducer_passes_the_reducer_tests(files):
    """Run the command on the page without slow tests."""
    _, _, command = DOC.partition('python -m pytest ')
    command, _, _ = command.partition('```')
    words = command.replace('\\', '').split()
    done = subprocess.run(
        [sys.executable, '-m', 'pytest', *words]
        + ['-m', 'not slow', '-q', '-p', 'no:cacheprovider'],
        cwd=ROOT,
        env=environment(files),
        text=True,
        stdout=subprocess.PIPE,
    )
    assert done.returncode == 0, done.stdout
    passed = re.search(r'(\d+) passed', done.stdout)
    assert int(passed[1]) > 9, done.stdout
