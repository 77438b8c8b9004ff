# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/test.py`` does."""

from copy import deepcopy

import mmengine
from mmengine.config import ConfigDict
from mmengine.dist import is_main_process
from mmengine.evaluator import DumpResults
from mmengine.hooks import Hook

from mmclca.checkpoints.loading import inner_model, load_trained
from mmclca.configs import read_config, require_settings
from mmclca.engine.runner import (
    build_runner,
    set_loader_defaults,
    set_up_run,
    use_compile,
)
from mmclca.models import fuse, fusible

from .. import plain_errors
from ..start import starting


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

    priority = 'HIGHEST'  # before EMA takes its weights

    def after_load_checkpoint(self, runner, checkpoint):
        load_trained(runner.model, checkpoint)
        checkpoint['state_dict'] = inner_model(runner.model).state_dict()


class FuseHook(Hook):
    """Test what is joined for inference, of the weights that EMA chose."""

    priority = 'VERY_LOW'  # after EMA puts its weights into the model
    modules = ()

    def before_test_epoch(self, runner):
        backbones = fusible(runner.model)
        self.modules = [(one, dict(one.named_children())) for one in backbones]
        fuse(runner.model)


class UnfuseHook(Hook):
    """Undo that."""

    priority = 'HIGHEST'  # before EMA takes its weights back

    def __init__(self, fused):
        self.fused = fused

    def after_test_epoch(self, runner, metrics=None):
        for backbone, modules in self.fused.modules:
            for name, module in modules.items():
                backbone.add_module(name, module)


def configure(args):
    """The config, with all that the command line says."""
    cfg = read_config(args.config, args.cfg_options)
    set_up_run(cfg, args.config, args.work_dir, args.launcher, args.local_rank)
    require_settings(cfg, 'model', 'test_dataloader', 'test_cfg')
    cfg.load_from = args.checkpoint
    # FlexibleRunner would fetch what only training starts from
    cfg.init_weights_for_test_or_val = False
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
    return cfg


def main(args):
    source = f'{args.config}, {args.checkpoint}'
    with plain_errors(source):
        runner = build_runner(configure(args))
        runner.register_hook(CompleteWeightsHook())
        if args.fuse:
            hook = FuseHook()
            runner.register_hook(hook)
            runner.register_hook(UnfuseHook(hook))
        if args.out and args.out_item != 'metrics':
            runner.test_evaluator.metrics.append(DumpResults(args.out))
    with starting(source, runner):
        metrics = runner.test()
    if args.out_item == 'metrics' and is_main_process():
        mmengine.dump(metrics, args.out)
