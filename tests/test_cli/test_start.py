# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Every tool answers at once: --help and wrong options import no torch."""

import subprocess
import sys

import pytest
from mmpretrain.models.backbones import VisionTransformer
from tiny_run import ROOT, environment

from mmclca.apis.probe import classifiers
from mmclca.benchmark import candidates, memory, setting
from mmclca.checkpoints import stored
from mmclca.cli import choices
from mmclca.cli.arguments import is_weights
from mmclca.cli.verbs import VERBS
from mmclca.datasets.ultra_fgvc import folders as layouts
from mmclca.datasets.ultra_fgvc import info
from mmclca.deployment import onnx_file
from mmclca.evaluation import open_set
from mmclca.models import head_variants, retrievers
from mmclca.visualization import cam, cka, tsne

TOOLS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob('tools/**/*.py'), ROOT / 'demo/app.py']
    # stands alone, is MMPretrain's, is no part of the product
    if path.name not in ('infer_onnx.py', 'analyze_logs.py')
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


@pytest.mark.parametrize(
    'offered, known',
    [
        (choices.ARCHS, sorted(VisionTransformer.arch_zoo)),
        (choices.METHODS, candidates.METHODS),
        (choices.MMPRETRAIN, candidates.MMPRETRAIN),
        (choices.PLAIN, candidates.PLAIN),
        (choices.AMP, setting.AMP),
        (choices.CUDA_GRAPHS, memory.CUDA_GRAPHS),
        (choices.SCORES, open_set.SCORES),
        (choices.CLASSIFIERS, classifiers.CLASSIFIERS),
        (choices.OUT_TYPES, head_variants.PARTS),
        (choices.STAGES, retrievers.STAGES),
        (choices.TSNE_STAGES, tsne.STAGES),
        (choices.CAM_METHODS, cam.METHODS),
        (choices.FEATURES, cka.FEATURES),
        (choices.OLDEST_OPSET, onnx_file.OLDEST_OPSET),
        (choices.FEWEST, cka.FEWEST),
        (choices.SETS, info.SETS),
        (choices.LAYOUTS, sorted(layouts.READERS)),
    ],
)
def test_offered_are_those_there_are(offered, known):
    if isinstance(offered, tuple):
        known = tuple(known)
    assert offered == known


def test_weights_are_told_by_the_endings_that_checkpoints_have():
    for ending in stored.WEIGHTS:
        assert is_weights(f'A{ending.upper()}')
    assert not is_weights('config.py')
