# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train a model: ``python tools/train.py CONFIG``."""

import argparse
from pathlib import Path

from mmengine.config import Config
from mmengine.device import get_device

from mmclca.utils.checkpoint_files import resume
from mmclca.utils.command_line import merge_options
from mmclca.utils.runs import (
    add_run_arguments,
    build_runner,
    set_loader_defaults,
    set_up_run,
    use_amp,
    use_compile,
)


def parse_args():
    parser = argparse.ArgumentParser(description='Train a model')
    parser.add_argument('config', help='path of the config')
    add_run_arguments(parser)
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='go on from a checkpoint (default: the newest whole one of '
        'the work dir)',
    )
    parser.add_argument(
        '--no-validate', action='store_true', help='do not validate'
    )
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help="scale the learning rate from the config's "
        'auto_scale_lr.base_batch_size to the batch size over all processes',
    )
    parser.add_argument(
        '--no-persistent-workers',
        action='store_true',
        help='start the workers of the data loaders anew in each epoch',
    )
    parser.add_argument(
        '--amp',
        nargs='?',
        const='fp16',
        choices=['fp16', 'bf16'],
        help='train in automatic mixed precision (default: fp16, with a '
        'dynamic scale of the loss; bf16 needs none)',
    )
    args = parser.parse_args()
    if args.amp and get_device() not in ('cuda', 'npu', 'mlu'):
        parser.error('--amp needs a GPU: without one train in float32')
    return args


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


def main():
    args = parse_args()
    cfg = Config.fromfile(args.config)
    merge_options(cfg, args.cfg_options)
    set_up_run(cfg, args.config, args.work_dir, args.launcher, args.local_rank)
    resume(cfg, args.resume)
    if args.amp:
        use_amp(cfg, args.amp)
    if args.compile:
        use_compile(cfg)
    if args.no_validate:
        skip_validation(cfg)
    if args.auto_scale_lr:
        scale_lr(cfg)
    set_loader_defaults(cfg, args.no_pin_memory, args.no_persistent_workers)
    runner = build_runner(cfg)
    if not args.resume:
        warn_of_earlier_run(runner)
    runner.train()


if __name__ == '__main__':
    main()
