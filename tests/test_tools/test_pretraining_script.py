# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Demo script from unlabeled images to an exported classifier."""

import re
import subprocess
import sys

import pytest
from tiny_run import ROOT, environment

pytestmark = pytest.mark.slow


def test_pretraining_script_writes_a_classifier(tmp_path):
    done = subprocess.run(
        ['bash', 'demo/pretraining.sh', str(tmp_path), '1', '4'],
        cwd=ROOT,
        env=environment(PYTHON=sys.executable),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert not done.returncode, done.stdout[-2000:]
    dropped = re.findall(r'not used here: (neck\S+)', done.stdout)
    assert dropped[0] == 'neck.mask_token,'
    assert re.search(r'new, not loaded: .*backbone\.cache', done.stdout)
    for file in ('reconstructions.png', 'clca.pt2', 'fitted/model.pth'):
        assert (tmp_path / file).is_file(), file
