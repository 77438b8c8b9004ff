# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train a model.

``python tools/train.py CONFIG``
"""

import os
from contextlib import ExitStack
from pathlib import Path

from mmclca.checkpoints.gate.folders import locked
from mmclca.utils.messages import check_integer

from ..arguments import add_run_arguments
from ..listing import Listing

LISTING = Listing('train and test', 'train a model from a config', 'training')

# rank of a process by launcher
RANKS = dict(pytorch='RANK', slurm='SLURM_PROCID', mpi='OMPI_COMM_WORLD_RANK')


def add_arguments(parser):
    parser.advice = 'Add --resume to the same command to resume.'
    parser.share('config')
    add_run_arguments(parser)
    parser.add(
        '--resume CHECKPOINT',
        'checkpoint to resume from; write --resume after CONFIG (default: '
        'newest in the work dir)',
        nargs='?',
        const='auto',
    )
    parser.flag('--no-validate', 'no validation')
    parser.flag('--auto-scale-lr', 'learning rate scaled to the batch size')
    parser.flag('--no-persistent-workers', 'restart the workers in each epoch')
    parser.flag(
        '--save-trainable', 'trained parameters only in the checkpoints'
    )
    parser.add(
        '--amp',
        'automatic mixed precision (default: fp16)',
        nargs='?',
        const='fp16',
        choices=['fp16', 'bf16'],
    )


def warn_of_earlier_run(runner):
    """Warn if ``best_*.pth`` may match two runs."""
    earlier = sorted(Path(runner.work_dir).glob('best_*.pth'))
    if earlier:
        runner.logger.warning(
            f'{runner.work_dir} has checkpoints of an earlier run '
            f'({earlier[0].name}), so best_*.pth may match both; choose '
            'another --work-dir'
        )


def configure(args):
    """Return the config with the command-line options applied."""
    from mmclca.checkpoints.resuming import resume
    from mmclca.configs import check_patches, read_config, require_settings
    from mmclca.engine.runner import (
        set_loader_defaults,
        set_up_run,
        use_amp,
        use_hook,
    )

    cfg = read_config(args.config, args.cfg_options)
    require_settings(cfg, 'model', 'train_dataloader', 'train_cfg')
    check_patches(cfg)
    counts = {'max_epochs', 'max_iters', 'val_interval'} & {*cfg.train_cfg}
    check_integer(**{name: cfg.train_cfg[name] for name in sorted(counts)})
    set_up_run(cfg, args.config, args.work_dir, args.launcher, args.local_rank)
    resume(cfg, args.resume)
    if args.amp:
        use_amp(cfg, args.amp)
    if args.compile:
        use_hook(cfg, 'CompileHook')
    if args.save_trainable:
        use_hook(cfg, 'SaveTrainableHook')
    if args.no_validate:
        cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    if args.auto_scale_lr:
        require_settings(cfg, 'auto_scale_lr.base_batch_size')
        cfg.auto_scale_lr.enable = True
    set_loader_defaults(cfg, args.no_pin_memory, args.no_persistent_workers)
    return cfg


def main(args):
    from mmclca.building import config_errors
    from mmclca.engine.runner import build_runner

    rank = os.environ.get(RANKS.get(args.launcher, ''), '0')
    with ExitStack() as stack:
        with config_errors(args.config):
            cfg = configure(args)
            if rank == '0':
                stack.enter_context(locked(Path(cfg.work_dir), 'training'))
            runner = build_runner(cfg)
        if not args.resume:
            warn_of_earlier_run(runner)
        runner.train()
