# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Import time: --help and wrong options do not import torch."""

import subprocess
import sys

import pytest
from tiny_run import ROOT, environment

from mmclca.cli.listing import SUBCOMMANDS

TOOLS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob('tools/**/*.py'), ROOT / 'demo/app.py']
    # independent of mmclca, from MMPretrain, or not in the wheel
    if path.name
    not in ('infer_onnx.py', 'analyze_logs.py', 'vis_scheduler.py')
    and not {'research', 'dev'} & {*path.parts}
)
# run all programs in one process, which may import none of `heavy`
CODE = """
import runpy, sys
heavy = {'torch', 'mmengine', 'mmpretrain', 'mmcv', 'matplotlib', 'pandas'}
for name in sys.argv[1:]:
    for option, code in (('--help', 0), ('--no-such-option', 2)):
        sys.argv = [name, option]
        try:
            if name.endswith('.py'):
                runpy.run_path(name, run_name='__main__')
            else:
                sys.argv[:1] = ['mmclca', name]
                runpy.run_module('mmclca', run_name='__main__')
        except SystemExit as end:
            assert end.code == code, (name, option, end.code)
        assert not heavy & {*sys.modules}, (name, option)
"""


@pytest.mark.parametrize(
    'names', [TOOLS, SUBCOMMANDS], ids=['tools', 'subcommands']
)
def test_help_and_wrong_options_import_nothing_heavy(names):
    assert len(names) > 25
    done = subprocess.run(
        [sys.executable, '-c', CODE, *names],
        cwd=ROOT,
        env=environment(),
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count('--debug') >= len(names)
