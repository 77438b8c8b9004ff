# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tiny dataset and config for training runs that take seconds."""

import json
import os
import re
import runpy
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.runner import Runner
from PIL import Image
from quick_runs import make_quick

from mmclca import cli
from mmclca.cli.listing import load_command
from mmclca.cli.main import get_main

ROOT = Path(__file__).resolve().parents[1]
CLASSES = ('ash', 'beech', 'elm', 'oak')

CONFIG = """
default_scope = 'mmpretrain'
model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='mmclca.TokenReductionViT',
        arch=dict(
            embed_dims=24,
            num_layers=3,
            num_heads=2,
            feedforward_channels=48,
        ),
        img_size=32,
        patch_size=8,
        reducer=dict(type='mmclca.TopK', keep_rate=0.5),
        reduce_at=(1,),
        cache=dict(type='mmclca.CrossLayerCache'),
    ),
    head=dict(type='LinearClsHead', num_classes=4, in_channels=24),
)
data_preprocessor = dict(num_classes=4, mean=[127.5] * 3, std=[127.5] * 3)
loader = dict(
    batch_size=4,
    num_workers=0,
    dataset=dict(
        type='CustomDataset',
        data_root='DATA',
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='Resize', scale=(32, 32)),
            dict(type='PackInputs'),
        ],
    ),
    sampler=dict(type='DefaultSampler', shuffle=True),
)
train_dataloader = loader
val_dataloader = loader
test_dataloader = loader
val_evaluator = dict(type='Accuracy')
test_evaluator = val_evaluator
train_cfg = dict(by_epoch=True, max_epochs=2)
val_cfg = dict()
test_cfg = dict()
optim_wrapper = dict(optimizer=dict(type='AdamW', lr=0.001))
default_hooks = dict(
    logger=dict(type='LoggerHook', interval=1),
    visualization=dict(type='VisualizationHook', enable=False),
)
visualizer = dict(type='UniversalVisualizer')
randomness = dict(seed=0)
"""
AVERAGE = """
custom_hooks = [dict(type='EMAHook', momentum=0.5)]
optim_wrapper['optimizer']['lr'] = 0.1
"""


def write_images(folder, per_class=4, size=32, seed=0):
    """Write noise images in class folders; brightness grows with the label."""
    rng = np.random.default_rng(seed)
    for label, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for i in range(per_class):
            noise = rng.integers(0, 100, (size, size, 3)) + 50 * label
            image = Image.fromarray(noise.astype(np.uint8))
            image.save(folder / name / f'{i}.png')


def write_run(folder):
    """Write data and config into ``folder``, and return the config path."""
    write_images(folder / 'data')
    config = folder / 'tiny.py'
    config.write_text(CONFIG.replace('DATA', str(folder / 'data')))
    return config


def train_with_hooks(folder, *hooks, **optim_wrapper):
    """Train the tiny config; return the runner and log lines with a loss."""
    cfg = Config.fromfile(write_run(folder))
    cfg.work_dir = str(folder / 'work')
    # otherwise runs started in the same second share a visualizer
    cfg.experiment_name = folder.name
    cfg.custom_hooks = list(hooks)
    cfg.visualizer.vis_backends = [dict(type='LocalVisBackend')]
    cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    cfg.optim_wrapper.update(optim_wrapper)
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch)
        runner = Runner.from_cfg(cfg)
        runner.train()
    (file,) = folder.glob('work/*/vis_data/scalars.json')
    lines = map(json.loads, file.read_text().splitlines())
    return runner, [line for line in lines if 'loss' in line]


def train_by_tool(folder):
    """Train the tiny config with weight averaging, by tools/train.py.

    Leaves ``data``, ``tiny.py`` and ``work_dirs/tiny`` in ``folder``.
    """
    config = write_run(folder)
    config.write_text(config.read_text() + AVERAGE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv('LOCAL_RANK', '0')
        run_tool(patch, ROOT / 'tools/train.py', 'tiny.py')


def environment(*folders, **more):
    """Environment for Python to find this mmclca, with one thread."""
    path = [str(ROOT), *map(str, folders)]
    path.extend(filter(None, [os.environ.get('PYTHONPATH')]))
    return dict(
        os.environ,
        OMP_NUM_THREADS='1',
        PYTHONPATH=os.pathsep.join(path),
        **more,
    )


def free_port():
    """Return a port on which no process listens."""
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


def run_python(*arguments, cwd):
    """Run Python on this checkout's mmclca, and capture its output."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        check=True,
        text=True,
        capture_output=True,
    )


def load_tool(monkeypatch, tool, *arguments):
    """Load the functions of a tool with its command line, ``main`` included.

    They come from its module in ``mmclca.cli.commands``.
    """
    monkeypatch.setattr(sys, 'argv', [tool.name, *map(str, arguments)])
    make_quick(monkeypatch)
    stub = re.search(r"run_command\('([\w-]+)'\)", tool.read_text())
    if not stub:
        return runpy.run_path(str(tool))
    command = load_command(stub[1])
    return {**vars(command), 'main': get_main(stub[1])}


def exit_code(main, *given):
    """Run the ``main`` of a tool like a shell, and return its exit code."""
    try:
        cli.run(partial(main, *given))
    except SystemExit as end:
        if isinstance(end.code, str):  # Python would print it
            print(end.code, file=sys.stderr)
            return 1
        return end.code
    return 0


def end_of(monkeypatch, tool, *arguments):
    """Run a tool in this process like a shell, and return its exit code."""
    return exit_code(load_tool(monkeypatch, tool, *arguments)['main'])


def run_tool(monkeypatch, tool, *arguments):
    """Run a tool in this process."""
    load_tool(monkeypatch, tool, *arguments)['main']()
