# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train a model: ``python tools/train.py CONFIG``."""

import os
from contextlib import ExitStack
from pathlib import Path

from mmclca.utils.folders import locked
from mmclca.utils.messages import check_integer

from .. import Parser, usage_errors
from ..arguments import add_run_arguments
from ..errors import setup_errors
from ..packages import checkpoints, configs, engine

# rank of a process by launcher
RANKS = dict(pytorch='RANK', slurm='SLURM_PROCID', mpi='OMPI_COMM_WORLD_RANK')


def parse_args():
    parser = Parser(
        'Train a model.', 'Add --resume to the same command to resume.'
    )
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
    return parser.parse_args()


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
    cfg = configs.read_config(args.config, args.cfg_options)
    configs.require_settings(cfg, 'model', 'train_dataloader', 'train_cfg')
    configs.check_patches(cfg)
    counts = {'max_epochs', 'max_iters', 'val_interval'} & {*cfg.train_cfg}
    check_integer(**{name: cfg.train_cfg[name] for name in sorted(counts)})
    engine.runner.set_up_run(
        cfg, args.config, args.work_dir, args.launcher, args.local_rank
    )
    checkpoints.resuming.resume(cfg, args.resume)
    if args.amp:
        engine.runner.use_amp(cfg, args.amp)
    if args.compile:
        engine.runner.use_hook(cfg, 'CompileHook')
    if args.save_trainable:
        engine.runner.use_hook(cfg, 'SaveTrainableHook')
    if args.no_validate:
        cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    if args.auto_scale_lr:
        configs.require_settings(cfg, 'auto_scale_lr.base_batch_size')
        cfg.auto_scale_lr.enable = True
    engine.runner.set_loader_defaults(
        cfg, args.no_pin_memory, args.no_persistent_workers
    )
    return cfg


def main(args):
    rank = os.environ.get(RANKS.get(args.launcher, ''), '0')
    with ExitStack() as held:
        with usage_errors(args.config):
            cfg = configure(args)
            if rank == '0':
                held.enter_context(locked(Path(cfg.work_dir), 'training'))
            runner = engine.runner.build_runner(cfg)
        if not args.resume:
            warn_of_earlier_run(runner)
        with setup_errors(args.config, runner):
            runner.train()
