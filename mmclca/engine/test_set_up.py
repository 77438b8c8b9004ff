# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Settings of a config that only a test has."""

from copy import deepcopy

from mmengine.config import Config, ConfigDict


def draw_predictions(
    cfg: Config,
    show: bool,
    show_dir: str | None,
    interval: int = 1,
    wait_time: float = 2,
) -> None:
    """Have every n-th prediction drawn, in a window or into a folder."""
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


def mirrored(pipeline: list[dict]) -> list[dict]:
    """Make a pipeline pack both an image and its mirror image."""
    flips = [dict(type='RandomFlip', prob=prob) for prob in (1.0, 0.0)]
    views = dict(type='TestTimeAug', transforms=[flips, [pipeline[-1]]])
    return [*deepcopy(pipeline[:-1]), views]


def use_tta(cfg: Config) -> None:
    """Wrap the model so that it averages the scores of several views."""
    dataset = cfg.test_dataloader.dataset
    tta_model = cfg.get('tta_model', dict(type='AverageClsScoreTTA'))
    dataset.pipeline = cfg.get('tta_pipeline') or mirrored(dataset.pipeline)
    cfg.model = ConfigDict(**tta_model, module=cfg.model)
