# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Every tool answers at once: --help and wrong options import no torch."""

import subprocess
import sys

from tiny_run import ROOT, environment

from mmclca.cli.verbs import VERBS

TOOLS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob('tools/**/*.py'), ROOT / 'demo/app.py']
    # stand alone, are MMPretrain's, are no part of the product
    if path.name
    not in ('infer_onnx.py', 'analyze_logs.py', 'vis_scheduler.py')
    and 'research' not in path.parts
)
# runs tools one after the other: what one of them imports, none may
HEAVY = """
import runpy, sys
heavy = {'torch', 'mmengine', 'mmpretrain', 'mmcv', 'matplotlib', 'pandas'}
"""
EACH = """
for tool in sys.argv[2:]:
    for option, code in (('--help', 0), ('--no-such-option', 2)):
        sys.argv = [tool, option]
        try:
            runpy.run_path(f'{root}/{tool}', run_name='__main__')
        except SystemExit as end:
            assert end.code == code, (tool, option, end.code)
        assert not heavy & {*sys.modules}, (tool, option)
"""


def test_help_and_wrong_options_import_nothing_heavy(tmp_path):
    assert len(TOOLS) > 30
    code = f'root = {str(ROOT)!r}{HEAVY}{EACH}'
    done = subprocess.run(
        [sys.executable, '-c', code, '-', *TOOLS],
        cwd=tmp_path,
        env=environment(),
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count('--debug') >= len(TOOLS)


EACH_VERB = """
for verb in sys.argv[1:]:
    for option, code in (('--help', 0), ('--no-such-option', 2)):
        sys.argv = ['mmclca', verb, option]
        try:
            runpy.run_module('mmclca', run_name='__main__')
        except SystemExit as end:
            assert end.code == code, (verb, option, end.code)
        assert not heavy & {*sys.modules}, (verb, option)
"""


def test_verbs_import_nothing_heavy_either(tmp_path):
    command = [sys.executable, '-c', f'{HEAVY}{EACH_VERB}', *VERBS]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), text=True, capture_output=1
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for verb in VERBS:
        assert f'usage: mmclca {verb} ' in done.stdout
