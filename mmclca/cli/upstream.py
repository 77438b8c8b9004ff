# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run tools of MMPretrain, which are programs of their own."""

import runpy
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

from mmclca.utils.files import atomic_backend


def upstream(name: str, **replacements: object) -> Callable[[], None]:
    """Return ``main`` of an MMPretrain tool, with one-line errors.

    Args:
        name (str): File in MMPretrain's ``tools`` folder.
        **replacements: Replacements for names imported by the tool.
    """

    def main():
        from mmclca.building import config_errors

        package = Path(find_spec('mmpretrain').origin).parent
        # these tools only read configs and logs, and build their parts
        with config_errors(), atomic_backend():
            tool = runpy.run_path(str(package / '.mim/tools' / name))['main']
            tool.__globals__.update(replacements)
            tool()

    return main


def vis_scheduler() -> None:
    """Draw a learning-rate schedule with MMPretrain's tool.

    The tool uses a model without layers, on which layer-wise decay, AMP and
    hooks fail; they are removed.
    """
    with TemporaryDirectory() as work_dir:
        config = SimpleNamespace(fromfile=partial(_read_schedule, work_dir))
        upstream('visualization/vis_scheduler.py', Config=config)()


def _read_schedule(work_dir: str, name: str):
    from mmclca.building import config_errors
    from mmclca.configs import read_config, require_settings

    needed = ('optim_wrapper.optimizer', 'train_cfg', 'train_dataloader')
    with config_errors(name):
        cfg = read_config(name)
        require_settings(cfg, *needed)
    cfg.work_dir = work_dir
    cfg.optim_wrapper = dict(optimizer=cfg.optim_wrapper.optimizer)
    cfg.default_hooks = dict(param_scheduler=dict(type='ParamSchedulerHook'))
    cfg.custom_hooks = None
    cfg.setdefault('param_scheduler', [])
    cfg.setdefault('default_scope', 'mmpretrain')
    return cfg
