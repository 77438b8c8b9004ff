# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy on photos after quarter turns, and how to raise it.

``python tools/research/turned.py`` prints, in percent, the accuracy and the
share flagged as unknown for upright and turned photos, and the share of turned
photos with another prediction than upright.
"""

from dataclasses import dataclass
from functools import partial

import fit_networks
import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from frozen import DATASETS, KEPT, photos
from torch import Tensor
from training_subsets import draw, get_labels

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.features import FeatureCache, feature_batches
from mmclca.apis.probe import FoldSettings
from mmclca.apis.probe.probe import feature_key
from mmclca.apis.probe.view_features import extract_turned as extract_view
from mmclca.checkpoints.gate.photo_table import compute_sha256
from mmclca.evaluation.open_set import threshold_by_folds

NAMES = (*DATASETS, 'chilli4', 'dates9', 'medleaf5', 'ricegrain14')
MAX_TESTED = 200  # random test photos per dataset
COUNTS, NUM_DRAWS = (5, 10), 3  # photos per class, random training sets
FOLDS = FoldSettings(repeats=1)
QUARTERS = (1, 2, 3)
BATCH_SIZE = 32


@dataclass(frozen=True)
class TurnedPhotos:
    """Features and labels of the photos of a dataset.

    Args:
        labels (Tensor): Labels (N,).
        tested (Tensor): Whether a photo is for testing (N,).
        zoomed (Tensor): Training views of ``fit`` for training photos
            (N, 3, D), zero for others. The first one is the whole photo.
        turned (Tensor): Photos after 0 to 3 quarter turns (N, 4, D).
    """

    labels: Tensor
    tested: Tensor
    zoomed: Tensor
    turned: Tensor


def read_photos(probe, name):
    """Extract the features of training photos and random test photos."""
    dataset = photos((name,))[name]
    labels, tested = get_labels(dataset)
    train, test = (torch.where(x)[0].numpy() for x in (~tested, tested))
    test = np.random.RandomState(0).permutation(test)[:MAX_TESTED]
    chosen = np.sort([*train, *test])
    paths, tested = [dataset.path[i] for i in chosen], tested[chosen]
    upright, _ = probe.features(paths)
    zoomed = torch.zeros(len(paths), 3, upright.shape[1])
    training_paths = [paths[i] for i in torch.where(~tested)[0]]
    zoomed[~tested] = probe.views(training_paths)[0]
    turned = [extract_turned(probe, paths, x) for x in QUARTERS]
    turned = torch.stack([upright, *turned], dim=1)
    return TurnedPhotos(labels[chosen], tested, zoomed, turned)


def extract_turned(probe, paths, quarters):
    """Return the features (N, D) of photos after quarter turns, cached."""
    model, digests = probe.model, [compute_sha256(path) for path in paths]
    width = probe.features(paths[:1])[0].shape[1]
    name = f'{feature_key(model)}-turned-{quarters}'
    cache = FeatureCache(KEPT, name, width)
    pairs = zip(paths, digests, strict=True)
    new = {digest: path for path, digest in pairs if digest not in cache}
    batches = feature_batches(
        TokenReductionInferencer(model, classes=probe.classes),
        [*new.values()],
        partial(extract_view, model, quarters),
        BATCH_SIZE,
    )
    for number, (features, _) in enumerate(batches):
        start = number * BATCH_SIZE
        cache.add([*new][start : start + BATCH_SIZE], features)
    return torch.stack([cache[digest] for digest in digests])


def measure(probe, dataset):
    """Yield a row per number of photos, random training set and method."""
    classes = [*map(str, range(1 + int(dataset.labels.max())))]
    for count in COUNTS:
        for seed in range(NUM_DRAWS):
            train = draw(dataset.labels, ~dataset.tested, count, seed)
            zoomed, turned = dataset.zoomed[train], dataset.turned[train]
            views = {
                'as now': zoomed,
                'turned instead of zoomed': turned,
                'turned and zoomed': torch.cat([zoomed, turned[:, 1:]], 1),
            }
            for method, training_views in views.items():
                cv = probe.fit(
                    training_views, dataset.labels[train], classes, folds=FOLDS
                )
                scores = probe.scores(
                    dataset.turned[dataset.tested].flatten(0, 1)
                )
                scores = scores.unflatten(0, (-1, 4))
                references = turned if method != 'as now' else turned[:, :1]
                yield dict(count=count, seed=seed, method=method) | rate(
                    scores, dataset, flag(dataset, train, references, cv)
                )
                if method == 'as now':
                    mean = scores.mean(1, keepdim=True).expand_as(scores)
                    flags = flag_averaged(dataset, train, cv)
                    row = dict(count=count, seed=seed, method='averaged')
                    yield row | rate(mean, dataset, flags)


def flag(dataset, train, references, cv):
    """Flag test photos as unknown (T, 4), as ``fit`` and ``predict`` do.

    ``references`` are the stored features (N, V, D) of training photos.
    """
    references = F.normalize(references, dim=2)
    unit = F.normalize(dataset.turned, dim=2)
    compared = unit[train, 0]
    similarities = torch.full((len(cv.splits), len(train)), torch.nan)
    for row, (train_rows, test) in zip(similarities, cv.splits, strict=True):
        stored = references[train_rows].flatten(0, 1)
        row[test] = (compared[test] @ stored.T).amax(1)
    threshold = threshold_by_folds(similarities)['threshold']
    new = unit[dataset.tested] @ references.flatten(0, 1).T
    return new.amax(2) < threshold


def flag_averaged(dataset, train, cv):
    """Flag test photos (T, 4) by the mean similarity of their four turns."""
    unit = F.normalize(dataset.turned, dim=2)
    stored = unit[train, 0]
    similarities = torch.full((len(cv.splits), len(train)), torch.nan)
    for row, (train_rows, test) in zip(similarities, cv.splits, strict=True):
        row[test] = (unit[train][test] @ stored[train_rows].T).amax(2).mean(1)
    threshold = threshold_by_folds(similarities)['threshold']
    nearest = (unit[dataset.tested] @ stored.T).amax(2)
    flags = nearest.mean(1, keepdim=True) < threshold
    return flags.expand_as(nearest)


def rate(scores, dataset, flags):
    """Return shares in percent, given scores (T, 4, K) and flags (T, 4)."""
    best = scores.argmax(2)
    correct = best == dataset.labels[dataset.tested][:, None]
    shares = dict(
        upright=correct[:, 0],
        turned=correct[:, 1:],
        renamed=best[:, 1:] != best[:, :1],
        flagged=flags[:, 0],
        flagged_turned=flags[:, 1:],
    )
    return {x: 100 * float(y.float().mean()) for x, y in shares.items()}


def main():
    (network,) = fit_networks.list_defaults(fit_networks.VIT)
    probe = fit_networks.build_probe(network)
    rows = []
    for name in NAMES:
        dataset = read_photos(probe, name)
        rows += [dict(set=name) | x for x in measure(probe, dataset)]
        print(name, flush=True)
    table = pd.DataFrame(rows).drop(columns='seed')
    by_set = table.groupby(['count', 'method', 'set'], sort=False).mean()
    print(by_set.round(1).to_string())
    means = by_set.groupby(['count', 'method'], sort=False).mean()
    print(means.round(1).to_string())


if __name__ == '__main__':
    main()
