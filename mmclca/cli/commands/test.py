# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Test a checkpoint, or a model folder on photos sorted by class.

``python tools/test.py CONFIG CHECKPOINT`` or
``python -m mmclca test MODEL FOLDER``
"""

import os
import shlex

from mmclca.checkpoints.model_folder import is_fitted
from mmclca.errors import Error
from mmclca.utils.extras import require
from mmclca.utils.messages import print_safe
from mmclca.utils.spreadsheets import NEEDED

from .. import model_files
from ..arguments import add_run_arguments, check_file, file_named
from ..listing import Listing

LISTING = Listing(
    'train and test',
    'test a checkpoint, or a model on sorted photos',
    'training',
)
DUMPS = ('.pkl', '.pickle', '.json', '.yaml', '.yml')
TABLES = ('.csv', '.xlsx')
# options for a config and a checkpoint, and their values by default
CONFIG_OPTIONS = dict(
    work_dir=None,
    compile=False,
    no_pin_memory=False,
    cfg_options={},
    launcher='none',
    out_item=None,
    show_dir=None,
    show=False,
    tta=False,
    fuse=False,
    amp=False,
    benchmark=None,
)


def add_arguments(parser):
    parser.advice = 'Run the same command to test again.'
    parser.add('config', 'path or name of a config, or a model folder')
    parser.add(
        'checkpoint',
        'paths or URLs of weights; several give mean and standard deviation; '
        'for a model folder, a folder with one folder of photos per class',
        nargs='+',
    )
    add_run_arguments(parser)
    parser.add(
        '--out FILE',
        'results file; .csv or .xlsx for a model folder',
        type=file_named(*DUMPS, *TABLES),
    )
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


def configure(args, checkpoint):
    """Return the config with the command-line options applied."""
    from mmclca.configs import read_config, require_settings
    from mmclca.engine.runner import set_loader_defaults, set_up_run, use_hook
    from mmclca.engine.testing import draw_predictions, use_benchmark, use_tta

    cfg = read_config(args.config, args.cfg_options)
    set_up_run(cfg, args.config, args.work_dir, args.launcher, args.local_rank)
    require_settings(cfg, 'model', 'test_dataloader', 'test_cfg')
    cfg.load_from = checkpoint
    # FlexibleRunner would download the weights for training
    cfg.init_weights_for_test_or_val = False
    if args.amp:
        cfg.test_cfg.fp16 = True
    if args.compile:
        use_hook(cfg, 'CompileHook')
    if args.show or args.show_dir:
        draw_predictions(
            cfg, args.show, args.show_dir, args.interval, args.wait_time
        )
    if args.benchmark:
        use_benchmark(cfg, args.benchmark)
    if args.tta:
        use_tta(cfg)
    set_loader_defaults(cfg, args.no_pin_memory)
    return cfg


def check_weights(checkpoints):
    """Find damaged files before data are read and others are tested.

    Nothing is downloaded, as settings may be wrong, too. Return the first
    checkpoint by its name, if it is a file, to read it once.
    """
    from mmclca.checkpoints.opening import open_checkpoint

    first = {}
    with model_files.quiet():
        for checkpoint in checkpoints:
            # other folders belong to runners of their own, as of DeepSpeed
            is_folder = os.path.isdir(checkpoint) and not is_fitted(checkpoint)
            if not (is_folder or '://' in checkpoint):
                opened = open_checkpoint(checkpoint)
                if checkpoint == checkpoints[0]:
                    first[checkpoint] = opened
    return first


def run_test(args, checkpoint):
    """Test one checkpoint and return its metrics."""
    from mmengine.evaluator import DumpResults

    from mmclca.building import config_errors
    from mmclca.engine.runner import SafeRunner, build_runner
    from mmclca.engine.testing import register_hooks

    if args.out_item and not args.out:
        raise Error('--out-item needs --out FILE')
    if args.out:
        check_file(args.out)
    several = len(args.checkpoint) > 1
    if args.out and several and args.out_item != 'metrics':
        raise Error('several checkpoints need --out-item metrics')
    source = f'{args.config}, {checkpoint}'
    with config_errors(source):
        cfg = configure(args, checkpoint)
    opened = {}
    if checkpoint == args.checkpoint[0]:
        opened = check_weights(args.checkpoint)
    with config_errors(source):
        runner = build_runner(cfg)
        if isinstance(runner, SafeRunner):
            runner.opened_checkpoints = opened
        register_hooks(runner, args.fuse)
        if args.out and args.out_item != 'metrics':
            dump = DumpResults(str(args.out))
            runner.test_evaluator.metrics.append(dump)
    return runner.test()


def test_folder(args):
    """Test a model folder on photos that are sorted by class."""
    for name, default in CONFIG_OPTIONS.items():
        if vars(args)[name] != default:
            raise Error(
                f'--{name.replace("_", "-")} is for a config and a '
                'checkpoint; for a model folder and photos, omit it'
            )
    if len(args.checkpoint) > 1:
        raise Error(
            f'{len(args.checkpoint)} folders for the model {args.config}; '
            'give one folder with one folder of photos per class'
        )
    if args.out:
        if args.out.suffix.lower() not in TABLES:
            raise Error(f'--out {args.out}: expected .csv or .xlsx')
        check_file(args.out)
        if args.out.suffix.lower() == '.xlsx':
            require(NEEDED, extra='tables')
    with model_files.quiet():
        from mmclca.fitting.sorted_folder import measure_sorted_folder
        from mmclca.fitting.sorted_folder_text import folder_test_lines
    with model_files.quiet():
        test = measure_sorted_folder(args.config, args.checkpoint[0])
    for line in folder_test_lines(test):
        print_safe(line)
    if args.out:
        test.write(args.out)
        print_safe(f'Saved      {args.out}')


def main(args):
    if is_fitted(args.config):
        test_folder(args)
        return
    if args.out and args.out.suffix.lower() in TABLES:
        raise Error(
            f'--out {args.out} is for a model folder; for a config, expected '
            f'{" ".join(DUMPS)}'
        )
    test_checkpoints(args)


def test_checkpoints(args):
    """Test one or several checkpoints with a config."""
    import mmengine
    from mmengine.dist import is_main_process

    from mmclca.engine.testing import average_runs

    per_checkpoint = [
        run_test(args, checkpoint) for checkpoint in args.checkpoint
    ]
    metrics = per_checkpoint[0]
    if len(per_checkpoint) > 1:
        metrics = average_runs(per_checkpoint)
    if not is_main_process():
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
        arguments = args.config, str(args.out), '--show-path', 'matrix.png'
        tool = 'python -m mmclca confusion-matrix'
        print_safe(f'Next       {tool} {shlex.join(arguments)}')
