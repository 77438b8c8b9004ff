# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Runs from scratch, beside probes of the weights that they started from."""

from statistics import fmean
from tempfile import TemporaryDirectory

import pandas as pd
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.runner import save_checkpoint, set_random_seed

from mmclca.apis import Probe
from mmclca.apis.labelled_images import LabelledImages, images_of_split
from mmclca.models import with_layer_fusion
from mmclca.models.from_config import build_on_meta
from mmclca.registry import MODELS

from .cell import Cell
from .text_table import grid

FOLDS = dict(folds=5, repeats=1)  # of the training images
# numbers of a result: title of the column, format, value
COSTS = (
    ('parameters (M)', '{:.2f}', lambda run: run['params'] / 1e6),
    ('GMACs', '{:.3f}', lambda run: run['gmacs']),
    ('CPU min', '{:.1f}', lambda run: run['cpu_seconds'] / 60),
    ('images/s, training', '{:.0f}', lambda run: run['throughput']['train']),
    ('images/s, test', '{:.0f}', lambda run: run['throughput']['test']),
)


def probe_start(cfg: Config) -> dict[str, float]:
    """What a linear classifier makes of the features of initial weights.

    Ridge regression on the training images, its strength chosen by folds,
    tested on the test images.

    Args:
        cfg (Config): Config of a run.

    Returns:
        dict[str, float]: Top-1 in per cent where it reads the CLS token of
        the last layer (``cls_token``), and the averages of the tokens of the
        first three quarters of the layers (``average``).
    """
    last = len(build_on_meta(cfg.model.backbone).layers) - 1
    read = dict(cls_token=(last,), average=None)
    return {
        out_type: _accuracy(
            cfg, with_layer_fusion(cfg.model, layers, out_type)
        )
        for out_type, layers in read.items()
    }


def _accuracy(cfg: Config, model: dict) -> float:
    """That of a probe of the initial weights of a model, in per cent."""
    cfg = Config(dict(cfg.to_dict(), model=model))
    train, test = (images_of_split(cfg, split) for split in ('train', 'test'))
    probe, classes = _untrained(cfg), train.classes
    features, labels = _read(probe, train, classes)
    probe.fit(features, labels, classes, **FOLDS)
    features, labels = _read(probe, test, classes)
    right = probe.scores(features).argmax(1) == labels
    return 100 * right.double().mean().item()


def _untrained(cfg: Config) -> Probe:
    """A probe of the weights that the seed of a config draws."""
    init_default_scope(cfg.default_scope)
    set_random_seed(cfg.randomness.seed)
    model = MODELS.build(cfg.model)
    model.init_weights()
    with TemporaryDirectory() as folder:
        file = f'{folder}/start.pth'
        save_checkpoint(dict(state_dict=model.state_dict()), file)
        return Probe(cfg, file)


def _read(
    probe: Probe, images: LabelledImages, classes: list[str]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and labels of images that were drawn: all can be read."""
    features, _ = probe.features(images.paths)
    labels = [classes.index(name) for name in images.names]
    return features, torch.tensor(labels)


def table_of_runs(
    results: list[dict],
    names: dict[str, str],
    starts: dict[str, dict[str, float]] | None = None,
) -> str:
    """A row a model in Markdown: accuracy by seed, and what a run costs.

    Args:
        results (list[dict]): Of :func:`mmclca.sweep.results.read_results`.
        names (dict[str, str]): Models by the ``variant`` of their cells, in
            the order of the rows; those without a result have none.
        starts (dict[str, dict[str, float]], optional): Of
            :func:`probe_start`, by the names of the cells. Defaults to None,
            which leaves them out of the table.
    """
    rows = []
    for variant, name in names.items():
        runs = [r for r in results if r['cell']['variant'] == variant]
        if runs:
            rows.append(dict(model=name) | _accuracies(runs, starts))
            rows[-1] |= {
                title: form.format(fmean(map(value, runs)))
                for title, form, value in COSTS
            }
    return grid(pd.DataFrame(rows), ('model',))


def _accuracies(runs: list[dict], starts: dict | None) -> dict[str, str]:
    """Top-1 of each seed, and of the better probe of its initial weights."""
    cells = {}
    for run in sorted(runs, key=lambda run: run['cell']['seed']):
        cell = Cell(**run['cell'])
        cells[f'top-1, seed {cell.seed}'] = f'{run["accuracy"]:.1f}'
        if starts:
            start = max(starts[cell.name].values())
            cells[f'before training, seed {cell.seed}'] = f'{start:.1f}'
    return cells
