# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy and calibration with several photos per plant.

``python tools/research/plants.py`` combines grains of one photo (ricegrain14)
and leaves of one synthetic plant. It prints, by the number of photos, the
accuracy that ``fit`` states and that of other plants, and in percent the
calibration error and the mean probability less the accuracy.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import fit_networks
import numpy as np
import pandas as pd
import torch
from frozen import KEPT, photos
from intervals import calibration_error

from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.datasets.synthetic_leaves.data_set import draw_data_set
from mmclca.evaluation.fusion import DEPENDENCE, combine_photos, measure_plants

DIFFERENCES = (0.4, 0.8)  # between the cultivars of the two synthetic sets
LEAVES = dict(classes=10, species=1, per_class=60, per_plant=4, size=224)
LEAVES |= dict(seed=0, val_fraction=0.2, test_fraction=0.2)
MAX_TRAINED = 6  # plants per class from which training plants are drawn
PLANTS_PER_CLASS = (3, 6)
MOST_PHOTOS, NUM_DRAWS, ORDERS = 3, 10, 3


@dataclass(frozen=True)
class PlantPhotos:
    """Photos of plants, (N,) each.

    Args:
        paths (list[str]): Files.
        labels (Tensor): Labels.
        plants (np.ndarray): Plant of each photo.
        can_train (np.ndarray): Whether a photo may be drawn for training.
    """

    paths: list[str]
    labels: torch.Tensor
    plants: np.ndarray
    can_train: np.ndarray


def read_grains():
    """Return grains; those cut from one photo count as one plant."""
    dataset = photos(('ricegrain14',))['ricegrain14']
    paths, labels = [*dataset.path], dataset.label.to_numpy()
    names = [re.match(r'[a-z]+_\d+', Path(path).name)[0] for path in paths]
    plants = [f'{label}/{x}' for label, x in zip(labels, names, strict=True)]
    everything = np.ones(len(paths), bool)
    return PlantPhotos(
        paths, torch.tensor(labels), np.array(plants), everything
    )


def draw_leaves(difference):
    """Draw synthetic leaves, unless they are there, and return them."""
    folder = KEPT / f'plants-{difference}'
    images = draw_data_set(folder, LEAVES | dict(difference=difference))
    names = [re.search(r'c\w+_plant_\d+', path)[0] for path in images.paths]
    number = [int(name.rpartition('_')[2]) for name in names]
    return PlantPhotos(
        images.paths,
        torch.tensor(images.labels),
        np.array(names),
        np.array(number) <= MAX_TRAINED,
    )


def measure(probe, dataset, per_class):
    """Return a table with a row per number of photos, and per dependence.

    Training plants are drawn at random ``NUM_DRAWS`` times; all others that
    have ``MOST_PHOTOS`` photos are tested.
    """
    classes = [*map(str, range(1 + int(dataset.labels.max())))]
    pool = np.where(dataset.can_train)[0]
    splits = GroupedSplits(dataset.labels[pool], dataset.plants[pool])
    views, _ = probe.views([dataset.paths[i] for i in pool])
    features, _ = probe.features(dataset.paths)
    stated, predictions = [], []
    for seed in range(NUM_DRAWS):
        drawn = splits.draw(np.full(len(classes), per_class), seed)
        train = pool[drawn]
        cv = probe.fit(
            views[drawn],
            dataset.labels[train],
            classes,
            dataset.plants[train].tolist(),
        )
        figures = measure_plants(
            cv.logits, cv.labels, dataset.plants[train].tolist(), MOST_PHOTOS
        )
        if figures is None:
            continue
        stated.append(figures.accuracies)
        chosen = draw_tests(dataset.plants, train, seed)
        scores = probe.scores(features)[chosen]
        labels = dataset.labels[chosen[:, 0]]
        predictions.append((figures.dependence, scores, labels))
    return pd.DataFrame(list_rows(stated, predictions))


def draw_tests(plants, train, seed):
    """Draw ``MOST_PHOTOS`` photos of each plant that was not trained on.

    Return positions (T, MOST_PHOTOS), with ``ORDERS`` rows per plant.
    """
    rng = np.random.default_rng(seed)
    others = np.setdiff1d(plants, plants[train])
    members = [np.where(plants == plant)[0] for plant in others]
    rows = [
        rng.permutation(positions)[:MOST_PHOTOS]
        for positions in members
        if len(positions) >= MOST_PHOTOS
        for _ in range(ORDERS)
    ]
    return torch.from_numpy(np.array(rows))


def list_rows(stated, predictions):
    """Yield a row per number of photos: means over the draws.

    Probabilities are those with the measured dependence, with the default,
    of independent photos, and the geometric mean.
    """
    labels = torch.cat([labels for *_, labels in predictions])
    dependences = [dependence for dependence, *_ in predictions]
    for number in range(1, MOST_PHOTOS + 1):
        row = dict(photos=number, dependence=np.mean(dependences))
        accuracies = [x[number - 1] for x in stated if len(x) >= number]
        row['stated'] = 100 * np.mean(accuracies)
        for name, fixed in dict(
            measured=None, default=DEPENDENCE, independent=0, mean=1
        ).items():
            probabilities = torch.cat(
                [
                    combine_photos(
                        scores[:, :number],
                        dependence if fixed is None else fixed,
                    ).exp()
                    for dependence, scores, _ in predictions
                ]
            )
            highest, best = probabilities.max(1)
            row['accuracy'] = 100 * float((best == labels).float().mean())
            row[f'{name}: error'] = 100 * calibration_error(
                probabilities, labels
            )
            excess = 100 * float(highest.mean()) - row['accuracy']
            row[f'{name}: excess'] = excess
        yield row


def main():
    (network,) = fit_networks.list_defaults(fit_networks.VIT)
    probe = fit_networks.build_probe(network)
    datasets = dict(ricegrain14=read_grains()) | {
        f'leaves, difference {x}': draw_leaves(x) for x in DIFFERENCES
    }
    for name, dataset in datasets.items():
        for per_class in PLANTS_PER_CLASS:
            print(f'{name}, {per_class} plants per class')
            table = measure(probe, dataset, per_class)
            print(table.round(2).to_string(index=False), flush=True)


if __name__ == '__main__':
    main()
