# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Schedules with the least loss within a latency, by dynamic programming.

The loss is additive: a reduction from n to m patches in a layer adds the loss
of m patches, minus that of n patches, in this layer.
"""

from dataclasses import dataclass

import numpy as np

from mmclca.benchmark.layer_times import ATTENTION, REDUCTIONS, LayerTimes

DEPTH = 12
PATCH = 16  # pixels
BIN = 0.02  # milliseconds
EMBEDDING = 0.26  # time of 196 patches, in layers with 197 tokens
# earlier layers hardly rank patches by their CLS attention
FIRST_LAYER = 3
# changed share of the variance if features are unrelated
UNRELATED = 2 / 3


@dataclass(frozen=True)
class Schedule:
    """Image size in pixels, and remaining patches by layer."""

    img_size: int
    steps: dict[int, int]

    @property
    def num_patches(self):
        """Patches before any reduction."""
        return (self.img_size // PATCH) ** 2

    @property
    def title(self):
        """Name, such as '160 px: 7: 48, 9: 32'."""
        steps = [f'{layer}: {left}' for layer, left in self.steps.items()]
        return f'{self.img_size} px: {", ".join(steps)}'


@dataclass(frozen=True)
class Clock:
    """Milliseconds of layers with and without a reduction of patches."""

    times: LayerTimes
    method: str = 'DiffRate'

    def embed(self, patches):
        """Return the milliseconds of the patch embedding."""
        return EMBEDDING * self.layer(197) * patches / 196

    def layer(self, tokens):
        """Return the milliseconds of a layer."""
        return float(self.times.interpolate([tokens])[0])

    def step(self, before, after):
        """Return the milliseconds of a layer that reduces its patches."""
        entering = self.layer(before + 1)
        if before == after:
            return entering
        same, fewest = REDUCTIONS[self.method]
        left = (1 - ATTENTION) * self.layer(after + 1)
        reduction = same * entering + fewest * self.times.milliseconds[0]
        return ATTENTION * entering + left + reduction

    def total(self, schedule):
        """Return the milliseconds of a network without its head."""
        patches = schedule.num_patches
        milliseconds = self.embed(patches)
        for layer in range(DEPTH):
            left = schedule.steps.get(layer, patches)
            milliseconds += self.step(patches, left)
            patches = left
        return milliseconds


def transform(share):
    """Return the loss of a changed share; large if features are unrelated."""
    return -np.log(1 - np.minimum(share / UNRELATED, 0.98))


class Losses:
    """Loss by image size, layer and remaining patches.

    Args:
        table (DataFrame): Changed share of the variance, with a column per
            dataset.
        names (list[str]): Datasets to average.
    """

    def __init__(self, table, names):
        loss = transform(table[names].mean(axis=1).to_numpy())
        self.table = table[['img_size', 'layer', 'patches']].assign(loss=loss)

    def get_size_loss(self, img_size):
        """Return the loss of smaller images."""
        rows = self.table[self.table.img_size == img_size]
        return float(rows.loss[rows.layer == 0].sum())  # 0 without a row

    def tabulate(self, img_size):
        """Return a table of losses, layers by patches, most patches first."""
        rows = self.table[self.table.img_size == img_size]
        rows = rows[rows.layer > 0]
        losses = rows.pivot(index='layer', columns='patches', values='loss')
        losses[(img_size // PATCH) ** 2] = 0.0
        return losses[sorted(losses, reverse=True)]

    def total(self, schedule):
        """Return the loss of a schedule, with interpolated patches."""
        losses = self.tabulate(schedule.img_size)
        ascending = losses.columns[::-1]
        total = self.get_size_loss(schedule.img_size)
        patches = schedule.num_patches
        for layer, left in schedule.steps.items():
            row = losses.loc[layer, ascending]
            after, before = np.interp([left, patches], ascending, row)
            total, patches = total + after - before, left
        return total


def choose(clock, losses, img_size, budget):
    """Return loss and schedule with the least loss within a budget in ms."""
    table = losses.tabulate(img_size)
    counts = [*table]
    bins = int((budget - clock.embed(counts[0])) / BIN)
    costs = np.array([[clock.step(n, m) for m in counts] for n in counts])
    costs = np.rint(costs / BIN).astype(int)
    best = np.full((len(counts), bins + 1), np.inf)
    best[0, costs[0, 0] :] = 0
    previous = []
    by_layer = {layer: row.to_numpy() for layer, row in table.iterrows()}
    for layer in range(1, DEPTH):
        reduces = layer >= FIRST_LAYER and layer in by_layer
        row = by_layer[layer] if reduces else None
        best, origin = add_layer(best, costs, row)
        previous.append(origin)
    i, left = int(np.argmin(best[:, -1])), bins
    loss, steps = best[i, -1], {}
    if not np.isfinite(loss):
        return loss, Schedule(img_size, steps)
    for layer in range(DEPTH - 1, 0, -1):
        before = previous[layer - 1][i, left]
        if before != i:
            steps[layer] = counts[i]
        left, i = left - costs[before, i], before
    loss += losses.get_size_loss(img_size)
    return loss, Schedule(img_size, dict(sorted(steps.items())))


def add_layer(best, costs, row):
    """Return the least losses after a layer, and the counts before it.

    ``best`` is (counts, bins), the least loss by patches and milliseconds.
    ``row`` are the losses in this layer by patches, None without a reduction.
    """
    after = np.full_like(best, np.inf)
    origin = np.zeros(best.shape, int)
    num_bins = best.shape[1]
    for j in range(len(costs)):
        for i in [j] if row is None else range(j + 1):
            added = 0 if i == j else max(row[j] - row[i], 0)
            cost = min(costs[i, j], num_bins)
            shifted = np.full(num_bins, np.inf)
            shifted[cost:] = best[i, : num_bins - cost] + added
            better = shifted < after[j]
            after[j][better], origin[j][better] = shifted[better], i
    return after, origin
