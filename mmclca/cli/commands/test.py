# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Test a checkpoint: ``python tools/test.py CONFIG CHECKPOINT``."""

from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_run_arguments
from ..mistakes import starting

configs = lazy('mmclca.configs')
engine_runner = lazy('mmclca.engine.runner')
mmengine = lazy('mmengine')
dist = lazy('mmengine.dist')
evaluator = lazy('mmengine.evaluator')
testing = lazy('mmclca.engine.testing')


def parse_args():
    parser = Parser('Test a checkpoint', 'the same command tests anew')
    parser.add('config', 'path or name of a config')
    parser.add('checkpoint', 'path or URL of the weights')
    add_run_arguments(parser)
    parser.add('--out FILE', 'write results to FILE')
    parser.add(
        '--out-item',
        'what to write (default: pred, the predictions)',
        choices=['metrics', 'pred'],
    )
    parser.add('--show-dir', 'write pictures of predictions')
    parser.flag('--show', 'show predictions in a window')
    parser.add('--interval', 'draw every n-th image', 1)
    parser.add('--wait-time', 'seconds a window stays', 2, type=float)
    parser.flag(
        '--tta',
        "average over augmented views: the config's tta_pipeline and "
        'tta_model, or else the image and its mirror image',
    )
    parser.flag(
        '--fuse',
        'join what need not be computed apart, parallel branches and affine '
        'maps: the same predictions',
    )
    parser.flag('--amp', 'automatic mixed precision')
    args = parser.parse_args()
    if args.out_item and not args.out:
        parser.error('--out-item needs --out FILE')
    return args


def configure(args):
    """The config, with all that the command line says."""
    cfg = configs.read_config(args.config, args.cfg_options)
    engine_runner.set_up_run(
        cfg, args.config, args.work_dir, args.launcher, args.local_rank
    )
    configs.require_settings(cfg, 'model', 'test_dataloader', 'test_cfg')
    cfg.load_from = args.checkpoint
    # FlexibleRunner would fetch what only training starts from
    cfg.init_weights_for_test_or_val = False
    if args.amp:
        cfg.test_cfg.fp16 = True
    if args.compile:
        engine_runner.use_compile(cfg)
    if args.show or args.show_dir:
        testing.draw_predictions(
            cfg, args.show, args.show_dir, args.interval, args.wait_time
        )
    if args.tta:
        testing.use_tta(cfg)
    engine_runner.set_loader_defaults(cfg, args.no_pin_memory)
    return cfg


def main(args):
    source = f'{args.config}, {args.checkpoint}'
    with plain_errors(source):
        runner = engine_runner.build_runner(configure(args))
        testing.register_hooks(runner, args.fuse)
        if args.out and args.out_item != 'metrics':
            runner.test_evaluator.metrics.append(
                evaluator.DumpResults(args.out)
            )
    with starting(source, runner):
        metrics = runner.test()
    if args.out_item == 'metrics' and dist.is_main_process():
        mmengine.dump(metrics, args.out)
