# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Test a checkpoint: ``python tools/test.py CONFIG CHECKPOINT``."""

import argparse
from copy import deepcopy

import mmengine
from mmengine.config import Config, ConfigDict
from mmengine.dist import is_main_process
from mmengine.evaluator import DumpResults
from mmengine.hooks import Hook

from mmclca.utils.command_line import merge_options
from mmclca.utils.runs import (
    add_run_arguments,
    build_runner,
    set_loader_defaults,
    set_up_run,
    use_compile,
)
from mmclca.utils.trained import check_complete, forget


def parse_args():
    parser = argparse.ArgumentParser(description='Test a checkpoint')
    parser.add_argument('config', help='path of the config')
    parser.add_argument('checkpoint', help='path or URL of the weights')
    add_run_arguments(parser)
    parser.add_argument('--out', metavar='FILE', help='write results to FILE')
    parser.add_argument(
        '--out-item',
        choices=['metrics', 'pred'],
        help='what to write (default: pred, the predictions)',
    )
    parser.add_argument('--show-dir', help='write pictures of predictions')
    parser.add_argument(
        '--show', action='store_true', help='show predictions in a window'
    )
    parser.add_argument(
        '--interval', type=int, default=1, help='draw every n-th image'
    )
    parser.add_argument(
        '--wait-time', type=float, default=2, help='seconds a window stays'
    )
    parser.add_argument(
        '--tta',
        action='store_true',
        help="average over augmented views: the config's tta_pipeline and "
        'tta_model, or else the image and its mirror image',
    )
    parser.add_argument(
        '--amp', action='store_true', help='automatic mixed precision'
    )
    args = parser.parse_args()
    if args.out_item and not args.out:
        parser.error('--out-item needs --out FILE')
    return args


def draw_predictions(cfg, show, show_dir, interval, wait_time):
    if 'visualization' not in (cfg.get('default_hooks') or {}):
        raise ValueError(
            '--show and --show-dir: the config has no visualization hook. '
            'Add default_hooks=dict(visualization='
            "dict(type='VisualizationHook'))"
        )
    cfg.default_hooks.visualization.update(
        enable=True,
        show=show,
        out_dir=show_dir,
        interval=interval,
        wait_time=wait_time,
    )


def mirrored(pipeline):
    """A pipeline whose last step, the packing, is done with both views."""
    flips = [dict(type='RandomFlip', prob=prob) for prob in (1.0, 0.0)]
    views = dict(type='TestTimeAug', transforms=[flips, [pipeline[-1]]])
    return [*deepcopy(pipeline[:-1]), views]


def use_tta(cfg):
    """Wrap the model so that it averages the scores of several views."""
    dataset = cfg.test_dataloader.dataset
    tta_model = cfg.get('tta_model', dict(type='AverageClsScoreTTA'))
    dataset.pipeline = cfg.get('tta_pipeline') or mirrored(dataset.pipeline)
    cfg.model = ConfigDict(**tta_model, module=cfg.model)


class CompleteWeightsHook(Hook):
    """Stop before the first image where the head would be one of noise."""

    def __init__(self, checkpoint):
        self.checkpoint = checkpoint

    def before_run(self, runner):
        forget(runner.model)

    def before_test(self, runner):  # the runner has loaded, EMA with it
        check_complete(runner.model, self.checkpoint)


def main():
    args = parse_args()
    cfg = Config.fromfile(args.config)
    merge_options(cfg, args.cfg_options)
    set_up_run(cfg, args.config, args.work_dir, args.launcher, args.local_rank)
    cfg.load_from = args.checkpoint
    cfg.model.pop('teacher', None)  # its files are not asked for
    if args.amp:
        cfg.test_cfg.fp16 = True
    if args.compile:
        use_compile(cfg)
    if args.show or args.show_dir:
        draw_predictions(
            cfg, args.show, args.show_dir, args.interval, args.wait_time
        )
    if args.tta:
        use_tta(cfg)
    set_loader_defaults(cfg, args.no_pin_memory)
    runner = build_runner(cfg)
    runner.register_hook(CompleteWeightsHook(args.checkpoint))
    if args.out and args.out_item != 'metrics':
        runner.test_evaluator.metrics.append(DumpResults(args.out))
    metrics = runner.test()
    if args.out_item == 'metrics' and is_main_process():
        mmengine.dump(metrics, args.out)


if __name__ == '__main__':
    main()
