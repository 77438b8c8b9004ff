# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Measure the probe arms on all draws: a result, a JSON file, an arm."""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

import torch
from torch import Tensor

from mmclca.apis import Probe
from mmclca.apis.probe import fit_linear
from mmclca.apis.probe.task import Task
from mmclca.evaluation.cost import count_config
from mmclca.utils.atomic_write import replace_text

from .arms import DEPTH, Frozen, ProbeArm
from .draws import NUM_DRAWS, read_draw

ALL_LAYERS = tuple(range(DEPTH))
# what `cls_average` gives of a layer, in its order
PARTS = dict(cls_token=0, average=1)
FOLDS = 3  # of three images a class, each is tested once


def measure_missing(
    arms: list[ProbeArm],
    data: Path,
    weights: Path,
    out: Path,
    facts: dict[str, str],
) -> Iterator[Path]:
    """Measure the arms of a data set that have no result yet.

    A network computes the features of all images once, whatever reads them.

    Args:
        arms (list[ProbeArm]): Those of a network after each other.
        data (Path): Folder of the data set, of whose name there are draws.
        weights (Path): Checkpoint of the network.
        out (Path): Folder of the results.
        facts (dict[str, str]): Where and with what is measured.

    Yields:
        Path: Each result that was written.

    Raises:
        FileNotFoundError: If the data or the weights are not there.
    """
    files = {arm: out / f'{data.name}_{arm.name}.json' for arm in arms}
    missing = [arm for arm, file in files.items() if not file.exists()]
    if missing:
        _check_there(data, weights)
    images = dict(sum(read_draw(data.name, 0), []))
    labels = torch.tensor(list(images.values()))
    draws = positions(images, data.name)
    for frozen, own in groupby(missing, lambda arm: arm.frozen):
        paths = [str(data / path) for path in images]
        features = all_features(frozen, weights, paths, int(labels.max()) + 1)
        for arm in own:
            record = dict(
                dataset=data.name,
                arm=asdict(arm),
                network=arm.network,
                train_images=len(draws[0][0]),
                **measure(arm, features, labels, draws),
                **cost(arm, int(labels.max()) + 1),
                machine=facts,
            )
            replace_text(files[arm], json.dumps(record, indent=1) + '\n')
            yield files[arm]


def _check_there(data: Path, weights: Path) -> None:
    for path, name in ((data, 'data'), (weights, 'weights')):
        if not path.exists():
            raise FileNotFoundError(
                f'there is no {path}: --{name} or MMCLCA_{name.upper()} must '
                'name the folder that has it'
            )


def positions(
    images: dict[str, int], dataset: str
) -> list[tuple[list[int], list[int]]]:
    """Where the images of each draw stand among all.

    Args:
        images (dict[str, int]): Labels by path.
        dataset (str): Name of the folder of the data set.

    Returns:
        list[tuple[list[int], list[int]]]: Positions to train on and to test.
    """
    place = {path: i for i, path in enumerate(images)}
    return [
        tuple([place[path] for path, _ in part] for part in draw)
        for draw in (read_draw(dataset, i) for i in range(NUM_DRAWS))
    ]


def all_features(
    frozen: Frozen, weights: Path, paths: list[str], num_classes: int
) -> Tensor:
    """Features of all layers.

    Args:
        frozen (Frozen): The network.
        weights (Path): Its checkpoint.
        paths (list[str]): Files of N images.
        num_classes (int): Number of classes.

    Returns:
        Tensor: CLS and the average of the tokens left, each normalized,
        (N, layers, 2, C).

    Raises:
        ValueError: If an image cannot be read.
    """
    config = frozen.config(ALL_LAYERS, 'cls_average', num_classes)
    features, unread = Probe(config, str(weights)).features(paths)
    if unread:
        raise ValueError(f'images that cannot be read: {unread}')
    return features.unflatten(1, (DEPTH, len(PARTS), -1))


def measure(
    arm: ProbeArm,
    features: Tensor,
    labels: Tensor,
    draws: list[tuple[list[int], list[int]]],
) -> dict:
    """Fit and test an arm on each draw.

    Args:
        arm (ProbeArm): The arm.
        features (Tensor): Of :func:`all_features`, (N, layers, 2, C).
        labels (Tensor): Classes (N,).
        draws (list[tuple[list[int], list[int]]]): Of :func:`positions`.

    Returns:
        dict: ``accuracy`` and ``macro_recall`` in per cent, ``strength`` and
        ``fit_seconds`` (of the CPU, choosing included) by the draw.
    """
    read = features[:, list(arm.layers), PARTS[arm.out_type]].flatten(1)
    results = [
        _of_draw(arm, read, labels, torch.tensor(train), torch.tensor(test))
        for train, test in draws
    ]
    return {key: [result[key] for result in results] for key in results[0]}


def _of_draw(arm: ProbeArm, features, labels, train, test) -> dict:
    num_classes = int(labels.max()) + 1
    given = features[train], labels[train], num_classes, arm.classifier
    start = time.process_time()
    strength = arm.strength or _chosen(*given)
    classifier = fit_linear(*given, strength)
    seconds = time.process_time() - start
    found = classifier.scores(features[test]).argmax(1)
    return dict(
        accuracy=_share(found == labels[test]),
        macro_recall=_macro_recall(found, labels[test]),
        strength=strength,
        fit_seconds=round(seconds, 3),
    )


def _chosen(*given) -> float:
    """The strength that folds of the training images choose."""
    task = Task.of(*given, groups=None, class_weights=None)
    return task.strengths[task.choose(FOLDS, seed=0)]


def _share(right: Tensor) -> float:
    """How many are right, in per cent."""
    return round(100 * right.double().mean().item(), 4)


def _macro_recall(found: Tensor, labels: Tensor) -> float:
    right = (found == labels).double()
    of_classes = [right[labels == label].mean() for label in labels.unique()]
    return round(100 * float(torch.stack(of_classes).mean()), 4)


def cost(arm: ProbeArm, num_classes: int) -> dict:
    """What an arm costs an image.

    Args:
        arm (ProbeArm): The arm.
        num_classes (int): Number of classes.

    Returns:
        dict: ``gmacs`` and ``params``.
    """
    counted = count_config(arm.model(num_classes))
    return dict(gmacs=counted.flops / 1e9, params=counted.params)
