# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Test a checkpoint: ``python tools/test.py CONFIG CHECKPOINT``."""

import shlex

from mmclca.errors import Error
from mmclca.utils.messages import print_safe

from .. import Parser, usage_errors
from ..arguments import add_run_arguments, check_file, file_named
from ..errors import setup_errors
from ..packages import configs, engine, mmengine


def parse_args():
    parser = Parser(
        'Test a checkpoint.', 'Run the same command to test again.'
    )
    parser.share('config')
    parser.add(
        'checkpoint',
        'paths or URLs of weights; several give mean and standard deviation',
        nargs='+',
    )
    add_run_arguments(parser)
    endings = file_named('.pkl', '.pickle', '.json', '.yaml', '.yml')
    parser.add('--out FILE', 'results file', type=endings)
    parser.add(
        '--out-item',
        'content of --out (default: pred, the predictions)',
        choices=['metrics', 'pred'],
    )
    parser.add('--show-dir', 'folder for pictures of predictions')
    parser.flag('--show', 'window with predictions')
    parser.add('--interval', 'interval of drawn images', 1)
    parser.add('--wait-time', 'seconds per image in the window', 2, type=float)
    parser.flag(
        '--tta',
        'test-time augmentation: views of tta_pipeline, or image and mirror '
        'image',
    )
    parser.flag('--fuse', 'fused parallel branches and affine maps')
    parser.flag('--amp', 'automatic mixed precision')
    parser.add(
        '--benchmark',
        'ReaL labels or ImageNet-V2, for ImageNet-1k configs',
        choices=['real', 'v2'],
    )
    return parser.parse_args()


def configure(args, checkpoint):
    """Return the config with the command-line options applied."""
    cfg = configs.read_config(args.config, args.cfg_options)
    engine.runner.set_up_run(
        cfg, args.config, args.work_dir, args.launcher, args.local_rank
    )
    configs.require_settings(cfg, 'model', 'test_dataloader', 'test_cfg')
    cfg.load_from = checkpoint
    # FlexibleRunner would download the weights for training
    cfg.init_weights_for_test_or_val = False
    if args.amp:
        cfg.test_cfg.fp16 = True
    if args.compile:
        engine.runner.use_hook(cfg, 'CompileHook')
    if args.show or args.show_dir:
        engine.testing.draw_predictions(
            cfg, args.show, args.show_dir, args.interval, args.wait_time
        )
    if args.benchmark:
        engine.testing.use_benchmark(cfg, args.benchmark)
    if args.tta:
        engine.testing.use_tta(cfg)
    engine.runner.set_loader_defaults(cfg, args.no_pin_memory)
    return cfg


def run_test(args, checkpoint):
    """Test one checkpoint and return its metrics."""
    source = f'{args.config}, {checkpoint}'
    with usage_errors(source):
        if args.out_item and not args.out:
            raise Error('--out-item needs --out FILE')
        if args.out:
            check_file(args.out)
        several = len(args.checkpoint) > 1
        if args.out and several and args.out_item != 'metrics':
            raise Error('several checkpoints need --out-item metrics')
        runner = engine.runner.build_runner(configure(args, checkpoint))
        engine.testing.register_hooks(runner, args.fuse)
        if args.out and args.out_item != 'metrics':
            dump = mmengine.evaluator.DumpResults(str(args.out))
            runner.test_evaluator.metrics.append(dump)
    with setup_errors(source, runner):
        return runner.test()


def main(args):
    found = [run_test(args, checkpoint) for checkpoint in args.checkpoint]
    metrics = found[0]
    if len(found) > 1:
        metrics = engine.testing.over_seeds(found)
    if not mmengine.dist.is_main_process():
        return
    if args.out_item == 'metrics':
        mmengine.dump(metrics, args.out)
    for name, value in metrics.items():
        if isinstance(value, float):
            unit = '%' * name.startswith('accuracy/')
            print_safe(f'Result     {name} {value:.4g}{unit}')
    if args.out:
        print_safe(f'Saved      {args.out}')
    if args.out and args.out_item != 'metrics':
        words = args.config, str(args.out), '--show-path', 'matrix.png'
        tool = 'python -m mmclca confusion-matrix'
        print_safe(f'Next       {tool} {shlex.join(words)}')
