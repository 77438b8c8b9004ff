# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What works with the required packages alone."""

import pytest
from tiny_run import run_python, write_run

EXTRAS = (
    'gradio', 'jinja2', 'odf', 'onnx', 'onnxruntime', 'onnxscript',
    'openpyxl', 'pandas', 'pi_heif', 'pyarrow', 'sklearn', 'submitit',
    'tabulate', 'transformers',
)  # fmt: skip
# in one process, since imports take most of the time
SCRIPT = """
import sys
from importlib.machinery import PathFinder

find = PathFinder.find_spec


def find_required(name, *place):
    missing = name.partition('.')[0] in EXTRAS
    return None if missing else find(name, *place)


PathFinder.find_spec = staticmethod(find_required)

import mmclca
import mmclca.models

loaded = {name.partition('.')[0] for name in sys.modules}
assert not loaded & {*EXTRAS, 'matplotlib'}, loaded

import torch
from mmengine.config import Config
from mmengine.runner import Runner
from timm.models.vision_transformer import VisionTransformer

cfg = Config.fromfile('tiny.py')
cfg.work_dir = 'work'
runner = Runner.from_cfg(cfg)
runner.train()
print('tested', runner.test()['accuracy/top1'])
model = VisionTransformer(32, 8, embed_dim=24, depth=3, num_heads=2).eval()
scores = mmclca.reduce_tokens(model)(torch.ones(1, 3, 32, 32))
print('reduced', tuple(scores.shape))
for name in ('fit', 'export_onnx'):
    try:
        getattr(mmclca, name)(model, 'file')
    except ImportError as error:
        print(error)
"""


@pytest.mark.first
@pytest.mark.slow
def test_train_test_and_reduce_tokens_need_no_extra(tmp_path):
    write_run(tmp_path)
    code = f'EXTRAS = {EXTRAS}\n{SCRIPT}'
    run = run_python('-W', 'ignore', '-c', code, cwd=tmp_path)
    *_, tested, reduced, fit, export = run.stdout.splitlines()
    assert tested.startswith('tested ') and reduced == 'reduced (1, 1000)'
    assert 'sklearn' in fit and fit.endswith('pip install "mmclca[fit]"')
    assert export.endswith('pip install "mmclca[deploy]"')
