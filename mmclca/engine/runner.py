# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Build an mmengine runner from a config and command-line options."""

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType

import torch
from mmengine.device import get_device
from mmengine.dist import master_only
from mmengine.hooks import CheckpointHook
from mmengine.registry import RUNNERS
from mmengine.runner import BaseLoop, Runner
from torch import nn
from torch.utils.data import DataLoader

from mmclca.building import config_errors
from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.load import adapt, fill
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.datasets import match_by_name
from mmclca.datasets.loading_steps import name_unread_files
from mmclca.errors import Error
from mmclca.models.pretrained import use_safe_initializer
from mmclca.utils.files import replace_text

from .first_iteration import convert_shape_errors
from .hooks import CheckInvalidLossHook, ExactResumeHook

# methods of runners that build what the config describes, or compare it with
# a checkpoint, when a training or test starts
SETUP = (
    '_init_model_weights',
    'build_optim_wrapper',
    'build_param_scheduler',
    'load_or_resume',
    'scale_lr',
)
LOOPS = 'build_test_loop', 'build_train_loop', 'build_val_loop'
SETUP_HOOKS = ('before_run', 'before_train', 'before_test')
PLAIN_CHECKPOINT_HOOK = (
    CheckpointHook,
    'CheckpointHook',
    'mmengine.CheckpointHook',
    'mmpretrain.CheckpointHook',
    'mmengine.hooks.CheckpointHook',  # in configs written as text
    'mmengine.hooks.checkpoint_hook.CheckpointHook',
)


class SafeRunner(Runner):
    """mmengine's ``Runner``, which refuses checkpoints with code.

    Checkpoints, also of an ``init_cfg``, are loaded by
    :mod:`mmclca.checkpoints.load`. The config in the work dir is replaced
    in one step.

    Attributes:
        opened_checkpoints (dict[str, Checkpoint]): Checkpoints that are open
            already, by name; each is used once.
    """

    opened_checkpoints: Mapping[str, Checkpoint] = MappingProxyType({})

    def build_model(self, model: nn.Module | dict) -> nn.Module:
        """Build a model, whose ``init_cfg`` runs no code of a checkpoint."""
        return super().build_model(use_safe_initializer(model))

    @staticmethod
    def build_dataloader(
        dataloader: DataLoader | dict,
        seed: int | None = None,
        diff_rank_seed: bool = False,
    ) -> DataLoader:
        """Build a data loader, whose errors name the file of an image."""
        loader = Runner.build_dataloader(dataloader, seed, diff_rank_seed)
        name_unread_files(loader.dataset)
        return loader

    @master_only
    def dump_config(self) -> None:
        """Write the config to ``config.py`` in the work dir.

        Under its own name, ``mim``, which searches the whole checkout for a
        config's name, would find it twice.
        """
        replace_text(Path(self.work_dir, 'config.py'), self.cfg.pretty_text)

    def load_checkpoint(
        self, filename, map_location='cpu', strict=False, revise_keys=()
    ):
        """Load a checkpoint into the model.

        Args:
            filename (str): Path, URL or ``timm://NAME``.
            map_location (str | Callable): See ``torch.load``. Defaults to
                'cpu'.
            strict (bool): Whether all parameters must be in the checkpoint.
                Defaults to False.
            revise_keys (Sequence): Not used, as weights are renamed by their
                model. Defaults to ().

        Returns:
            Checkpoint: The checkpoint.
        """
        opened = {**self.opened_checkpoints}
        checkpoint = opened.pop(filename, None)
        self.opened_checkpoints = opened
        if checkpoint is None:
            checkpoint = open_checkpoint(filename, map_location)
        adapted = adapt(self.model, checkpoint)
        checkpoint['state_dict'] = adapted.weights  # hooks may replace them
        self.call_hook('after_load_checkpoint', checkpoint=checkpoint)
        adapted.weights = checkpoint.weights
        fill(self.model, adapted, strict)
        self._has_loaded = True
        self.logger.info(f'Load checkpoint from {filename}')
        return checkpoint


def set_up_run(cfg, config, work_dir, launcher, local_rank):
    """Set scope, work dir, launcher and ``LOCAL_RANK``; join CPU processes."""
    cfg.setdefault('default_scope', 'mmpretrain')
    os.environ.setdefault('LOCAL_RANK', str(local_rank))
    default = cfg.get('work_dir') or f'./work_dirs/{Path(config).stem}'
    cfg.work_dir = work_dir or default
    cfg.launcher = launcher
    if launcher == 'pytorch' and get_device() == 'cpu':
        join_processes_on_cpu(cfg)


def join_processes_on_cpu(cfg):
    """Set up distributed training on CPUs, which mmengine does not support."""
    torch.distributed.init_process_group('gloo')
    wrapper = dict(
        type='MMDistributedDataParallel',
        broadcast_buffers=False,
        find_unused_parameters=cfg.get('find_unused_parameters', False),
    )
    wrapper.update(cfg.get('model_wrapper_cfg') or {}, device_ids=None)
    cfg.model_wrapper_cfg = wrapper


def use_amp(cfg, dtype='fp16'):
    """Set automatic mixed precision in a config."""
    wrapper = cfg.optim_wrapper
    if dtype == 'bf16':
        wrapper.type = 'mmclca.BF16OptimWrapper'
        wrapper.pop('loss_scale', None)
    else:
        if get_device() == 'cpu':
            raise Error(
                'mixed precision in fp16 needs a GPU; on a CPU, use bf16 '
                '(`amp=bf16`)'
            )
        wrapper.update(type='AmpOptimWrapper', dtype='float16')
        wrapper.setdefault('loss_scale', 'dynamic')


def use_hook(cfg, name):
    """Add the hook ``mmclca.NAME`` to a config unless it has one."""
    hooks = cfg.get('custom_hooks') or []
    if all(hook['type'] != f'mmclca.{name}' for hook in hooks):
        cfg.custom_hooks = [*hooks, dict(type=f'mmclca.{name}')]


def set_loader_defaults(cfg, no_pin_memory=False, no_persistent_workers=False):
    """Set defaults for the data loaders in a config."""
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
    """Replace mmengine's checkpoint hooks in a config by atomic ones."""
    default = dict(checkpoint=dict(type='CheckpointHook', interval=1))
    cfg.default_hooks = {**default, **(cfg.get('default_hooks') or {})}
    hooks = (*cfg.default_hooks.values(), *(cfg.get('custom_hooks') or []))
    for hook in filter(None, hooks):
        if hook['type'] in PLAIN_CHECKPOINT_HOOK:
            # the full path works in any default scope
            hook['type'] = 'mmclca.engine.hooks.AtomicCheckpointHook'


def use_class_count(cfg):
    """Add ``ClassCountHook`` to a classifier's config unless it has one."""
    hooks = cfg.get('custom_hooks') or []
    named = any('ClassCountHook' in str(hook['type']) for hook in hooks)
    model = cfg.model.get('module', cfg.model)  # inside LoRA
    if 'num_classes' in (model.get('head') or {}) and not named:
        checked = dict(type='mmclca.engine.hooks.ClassCountHook')
        cfg.custom_hooks = [*hooks, checked]


def convert_setup_errors(runner: Runner, source: str | None) -> None:
    """Make a runner raise ``mmclca.Error`` for wrong settings of its parts.

    It builds some of them, and hooks prepare themselves, at the start of a
    training or test. Errors after this are not converted, except for images
    that cannot be decoded, and wrong shapes in the first iteration.
    """
    for name in {*SETUP} & {*dir(runner)}:
        setattr(runner, name, config_errors(source)(getattr(runner, name)))
    for name in {*LOOPS} & {*dir(runner)}:
        build = _convert_loop(getattr(runner, name), source)
        setattr(runner, name, build)
    call_hook = runner.call_hook

    def call(fn_name: str, **arguments) -> None:
        is_setup = fn_name in SETUP_HOOKS
        with config_errors(source) if is_setup else nullcontext():
            call_hook(fn_name, **arguments)

    runner.call_hook = call


def _convert_loop(
    build: Callable[..., BaseLoop], source: str | None
) -> Callable[..., BaseLoop]:
    """Extend a method for building a loop, see ``convert_setup_errors``."""

    def build_converted(settings: BaseLoop | dict) -> BaseLoop:
        with config_errors(source):
            loop = build(settings)
        convert_shape_errors(loop, source)
        return loop

    return build_converted


def build_runner(cfg, runner_class=SafeRunner):
    """Build a runner with our default hooks and atomic checkpoints.

    ``runner_class`` is used for configs without ``runner_type``.
    """
    set_loader_defaults(cfg)
    use_atomic_checkpoints(cfg)
    use_class_count(cfg)
    build = RUNNERS.build if 'runner_type' in cfg else runner_class.from_cfg
    with config_errors():
        runner = build(cfg)
    convert_setup_errors(runner, cfg.filename)
    for name in ('_train_dataloader', '_val_dataloader', '_test_dataloader'):
        # leave the config alone: checkpoints store it as the user wrote it
        setattr(runner, name, match_by_name(vars(runner)[name]))
    for hook in (CheckInvalidLossHook(), ExactResumeHook()):
        runner.register_hook(hook)
    return runner
