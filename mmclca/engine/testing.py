# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Config settings and hooks for testing only."""

from copy import deepcopy
from pathlib import Path
from statistics import mean, stdev

from mmengine.config import Config, ConfigDict
from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmclca.errors import Error
from mmclca.models import fuse, fusible

from .hooks.complete_weights_hook import CompleteWeightsHook

# folder name in the ImageNet-V2 release
V2 = 'imagenetv2-matched-frequency-format-val'


def draw_predictions(
    cfg: Config, show: bool, show_dir: str, interval: int, wait_time: float
) -> None:
    """Draw every ``interval``-th prediction in a window or a folder."""
    if 'visualization' not in (cfg.get('default_hooks') or {}):
        raise Error(
            '`show` and `show_dir` need a visualization hook; add '
            "default_hooks=dict(visualization=dict(type='VisualizationHook')) "
            'to the config'
        )
    cfg.default_hooks.visualization.update(
        enable=True,
        show=show,
        out_dir=show_dir,
        interval=interval,
        wait_time=wait_time,
    )


def mirrored(pipeline: list[dict]) -> list[dict]:
    """Make a pipeline return each image and its mirror image."""
    flips = [dict(type='RandomFlip', prob=prob) for prob in (1.0, 0.0)]
    views = dict(type='TestTimeAug', transforms=[flips, [pipeline[-1]]])
    return [*deepcopy(pipeline[:-1]), views]


def use_tta(cfg: Config) -> None:
    """Wrap the model to average scores over several views."""
    dataset = cfg.test_dataloader.dataset
    tta_model = cfg.get('tta_model', dict(type='AverageClsScoreTTA'))
    dataset.pipeline = cfg.get('tta_pipeline') or mirrored(dataset.pipeline)
    cfg.model = ConfigDict(**tta_model, module=cfg.model)


def use_benchmark(cfg: Config, name: str) -> None:
    """Test on ReaL labels or on ImageNet-V2 instead of ImageNet.

    real.json must be in the ImageNet folder, and the ImageNet-V2 folder next
    to the ImageNet folder.
    """
    dataset = cfg.test_dataloader.dataset
    if dataset.get('type') != 'ImageNet':
        raise Error(
            f'`benchmark={name}` needs a config that tests on ImageNet-1k, '
            'such as one in configs/deit3; this config tests on '
            f'{dataset.get("type")}'
        )
    root = Path(dataset.data_root)
    if name == 'v2':
        cfg.test_dataloader.dataset = dict(
            type='mmclca.ImageNetV2',
            data_root=str(root.parent / V2),
            pipeline=dataset.pipeline,
        )
    else:
        labels = str(root / 'real.json')
        cfg.test_evaluator = dict(type='mmclca.ReaLAccuracy', labels=labels)


def average_runs(runs: list[dict]) -> dict:
    """Compute mean and sample standard deviation of metrics over runs."""
    averages = {}
    for name in runs[0]:
        values = [metrics[name] for metrics in runs]
        averages[name] = mean(values)
        averages[f'{name}_std'] = stdev(values)
    return averages


def register_hooks(runner: Runner, fused: bool = False) -> None:
    """Register the test hooks; ``fused`` adds branch fusion."""
    hooks: list[Hook] = []
    if not any(isinstance(hook, CompleteWeightsHook) for hook in runner.hooks):
        hooks.append(CompleteWeightsHook())
    if fused:
        joined = FuseHook()
        hooks += [joined, UnfuseHook(joined)]
    for hook in hooks:
        runner.register_hook(hook)


class FuseHook(Hook):
    """Fuse the model after EMA has swapped in its weights."""

    priority = 'VERY_LOW'  # run after EMA swaps its weights in
    modules = ()

    def before_test_epoch(self, runner):
        backbones = fusible(runner.model)
        self.modules = [
            (backbone, dict(backbone.named_children()))
            for backbone in backbones
        ]
        fuse(runner.model)


class UnfuseHook(Hook):
    """Restore the branches fused by :class:`FuseHook`."""

    priority = 'HIGHEST'  # run before EMA swaps its weights out

    def __init__(self, fused):
        self.fused = fused

    def after_test_epoch(self, runner, metrics=None):
        for backbone, modules in self.fused.modules:
            for name, module in modules.items():
                backbone.add_module(name, module)
