# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Demo script from unlabeled images to an exported classifier."""

import re
import subprocess
import sys

import pytest
from installed import is_installed
from tiny_run import ROOT, environment

from mmclca.utils.torch_versions import COMPILES

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
    exports = is_installed('torch', COMPILES)
    said = done.stdout[-2000:]
    assert exports == (not done.returncode), said
    # the export ends the script
    assert exports or f'export needs torch {COMPILES}' in said
    dropped = re.findall(r'not used here: (neck\S+)', done.stdout)
    assert dropped[0] == 'neck.mask_token,'
    assert re.search(r'new, not loaded: .*backbone\.cache', done.stdout)
    for file in ('reconstructions.png', 'fitted/model.pth'):
        assert (tmp_path / file).is_file(), file
    assert (tmp_path / 'clca.pt2').is_file() == exports
