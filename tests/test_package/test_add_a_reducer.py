# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""docs/add_a_reducer.md does what it says."""

import re
import subprocess
import sys

import pytest
from tiny_run import ROOT, environment

DOC = (ROOT / 'docs/add_a_reducer.md').read_text()
REDUCER, CONFIG, TRACE = re.findall(r'```python\n(.*?)```', DOC, re.DOTALL)
TRAIN = """
from mmpretrain.structures import DataSample

samples = [DataSample().set_gt_label(i) for i in range(8)]
losses = model.train()(torch.randn(8, 3, 112, 112), samples, mode='loss')
losses['loss'].backward()
assert all(p.grad.isfinite().all() for p in model.parameters())
assert model.backbone.cls_token.grad.any()
print(type(model.backbone.reducer).__name__, model.backbone.reducer.keep_rates)
"""


@pytest.fixture
def run(tmp_path):
    """Run Python in the checkout; the files of the page are importable."""
    config = CONFIG.replace('./configs', str(ROOT / 'configs'))
    (tmp_path / 'random_drop.py').write_text(REDUCER)
    (tmp_path / 'random_drop_leaves.py').write_text(config)

    def run(*arguments, cwd=ROOT):
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=cwd,
            env=environment(tmp_path),
            text=True,
            capture_output=True,
        )

    return run


def test_example_trains_and_its_trace_is_read(run, tmp_path):
    done = run('-c', TRACE + TRAIN, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shape, *left, reducer = done.stdout.strip().splitlines()
    # of 8 x 8 patches, every other one three times; then 7 cached tokens
    assert shape == 'torch.Size([1, 17, 64])'
    patches = [int(number) for number in re.findall(r'\d+', ' '.join(left))]
    assert patches == [0, 1, 9, 17, 25, 33, 41, 49, 57]
    assert reducer == 'RandomDrop (0.5, 0.5, 0.5)'


def test_example_passes_what_every_reducer_passes(run):
    """The command of the page, without the slow tests."""
    _, _, command = DOC.partition('python -m pytest ')
    command, _, _ = command.partition('```')
    done = run(
        *('-m', 'pytest', *command.replace('\\', '').split()),
        *('-m', 'not slow', '-q', '-p', 'no:cacheprovider'),
    )
    assert done.returncode == 0, done.stdout
    passed = re.search(r'(\d+) passed', done.stdout)
    assert int(passed[1]) > 20, done.stdout
