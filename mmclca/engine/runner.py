# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From a config and a command line to a runner of mmengine."""

import os
from pathlib import Path

import torch
from mmengine.device import get_device
from mmengine.hooks import CheckpointHook
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from mmclca.datasets import match_by_name

from .hooks import FiniteHook

PLAIN_CHECKPOINT_HOOK = (
    CheckpointHook,
    'CheckpointHook',
    'mmengine.CheckpointHook',
    'mmpretrain.CheckpointHook',
)


def set_up_run(cfg, config, work_dir, launcher, local_rank):
    """Tell a config where its results go and how its processes start."""
    os.environ.setdefault('LOCAL_RANK', str(local_rank))
    default = cfg.get('work_dir') or f'./work_dirs/{Path(config).stem}'
    cfg.work_dir = work_dir or default
    cfg.launcher = launcher
    if launcher == 'pytorch' and get_device() == 'cpu':
        join_processes_on_cpu(cfg)


def join_processes_on_cpu(cfg):
    """Do without a GPU what mmengine's launcher does with one."""
    torch.distributed.init_process_group('gloo')
    wrapper = dict(
        type='MMDistributedDataParallel',
        broadcast_buffers=False,
        find_unused_parameters=cfg.get('find_unused_parameters', False),
    )
    wrapper.update(cfg.get('model_wrapper_cfg') or {}, device_ids=None)
    cfg.model_wrapper_cfg = wrapper


def use_amp(cfg, dtype='fp16'):
    """Train in automatic mixed precision."""
    wrapper = cfg.optim_wrapper
    if dtype == 'bf16':
        wrapper.type = 'mmclca.BF16OptimWrapper'
        wrapper.pop('loss_scale', None)
    else:
        wrapper.update(type='AmpOptimWrapper', dtype='float16')
        wrapper.setdefault('loss_scale', 'dynamic')


def use_hook(cfg, name):
    """Give a config a hook of ours where it has none of that kind."""
    hooks = cfg.get('custom_hooks') or []
    if all(hook['type'] != f'mmclca.{name}' for hook in hooks):
        cfg.custom_hooks = [*hooks, dict(type=f'mmclca.{name}')]


def set_loader_defaults(cfg, no_pin_memory=False, no_persistent_workers=False):
    """Fill in what the data loaders of a config leave open."""
    loaders = [f'{name}_dataloader' for name in ('train', 'val', 'test')]
    for loader in filter(None, map(cfg.get, loaders)):
        has_workers = loader.get('num_workers', 0) > 0
        loader.setdefault('collate_fn', dict(type='default_collate'))
        loader.setdefault('pin_memory', torch.cuda.is_available())
        loader.setdefault('persistent_workers', has_workers)
        if no_pin_memory:
            loader.pin_memory = False
        if no_persistent_workers or not has_workers:
            loader.persistent_workers = False


def use_atomic_checkpoints(cfg):
    """Have a run write each checkpoint whole or not at all."""
    default = dict(checkpoint=dict(type='CheckpointHook', interval=1))
    cfg.default_hooks = {**default, **(cfg.get('default_hooks') or {})}
    hooks = (*cfg.default_hooks.values(), *(cfg.get('custom_hooks') or []))
    for hook in filter(None, hooks):
        if hook['type'] in PLAIN_CHECKPOINT_HOOK:
            # by its path, which is found from any default scope
            hook['type'] = 'mmclca.engine.hooks.AtomicCheckpointHook'


def use_class_count(cfg):
    """Have the number of classes compared before weights are fetched."""
    hooks = cfg.get('custom_hooks') or []
    named = any('ClassCountHook' in str(hook['type']) for hook in hooks)
    model = cfg.model.get('module', cfg.model)  # LoRA is around it
    if 'num_classes' in (model.get('head') or {}) and not named:
        checked = dict(type='mmclca.engine.hooks.ClassCountHook')
        cfg.custom_hooks = [*hooks, checked]


def build_runner(cfg, runner_class=Runner):
    """Build the runner that a config asks for.

    A kill or a full disk loses none of the checkpoints that it has written.

    Args:
        cfg (Config): The config.
        runner_class (type[Runner]): Class of a runner without
            ``runner_type``. Defaults to ``Runner``.

    Returns:
        mmengine.runner.Runner: Of ``runner_class``, or the one of
        ``runner_type``.
    """
    set_loader_defaults(cfg)
    use_atomic_checkpoints(cfg)
    use_class_count(cfg)
    build = RUNNERS.build if 'runner_type' in cfg else runner_class.from_cfg
    runner = build(cfg)
    for name in ('_train_dataloader', '_val_dataloader', '_test_dataloader'):
        # not in the config, which checkpoints hold as the user wrote it
        setattr(runner, name, match_by_name(vars(runner)[name]))
    runner.register_hook(FiniteHook())
    return runner
