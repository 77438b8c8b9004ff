# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/train.py`` does."""

from pathlib import Path

from mmengine.device import get_device

from mmclca.checkpoints.resuming import resume
from mmclca.configs import check_patches, read_config, require_settings
from mmclca.engine.runner import (
    build_runner,
    set_loader_defaults,
    set_up_run,
    use_amp,
    use_compile,
)

from .. import plain_errors
from ..start import starting


def skip_validation(cfg):
    cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None


def scale_lr(cfg):
    if 'auto_scale_lr' not in cfg:
        raise ValueError(
            '--auto-scale-lr: the config has no auto_scale_lr. Add the batch '
            'size that its learning rate was chosen for: '
            'auto_scale_lr=dict(base_batch_size=32)'
        )
    cfg.auto_scale_lr.enable = True


def warn_of_earlier_run(runner):
    """Say so where ``best_*.pth`` is going to stand for two runs."""
    earlier = sorted(Path(runner.work_dir).glob('best_*.pth'))
    if earlier:
        runner.logger.warning(
            f'{runner.work_dir} holds checkpoints of an earlier run '
            f'({earlier[0].name}), and best_*.pth may stand for both: '
            '--work-dir gives this run a folder of its own'
        )


def configure(args):
    """The config, with all that the command line says."""
    cfg = read_config(args.config, args.cfg_options)
    require_settings(cfg, 'model', 'train_dataloader', 'train_cfg')
    check_patches(cfg)
    set_up_run(cfg, args.config, args.work_dir, args.launcher, args.local_rank)
    resume(cfg, args.resume)
    if args.amp:
        check_gpu(args.amp)
        use_amp(cfg, args.amp)
    if args.compile:
        use_compile(cfg)
    if args.no_validate:
        skip_validation(cfg)
    if args.auto_scale_lr:
        scale_lr(cfg)
    set_loader_defaults(cfg, args.no_pin_memory, args.no_persistent_workers)
    return cfg


def check_gpu(amp):
    if amp == 'fp16' and get_device() not in ('cuda', 'npu', 'mlu'):
        raise ValueError(
            '--amp needs a GPU: without one train in float32, or with --amp '
            'bf16 where the CPU has instructions for it'
        )


def main(args):
    with plain_errors(args.config):
        runner = build_runner(configure(args))
    if not args.resume:
        warn_of_earlier_run(runner)
    with starting(args.config, runner):
        runner.train()
