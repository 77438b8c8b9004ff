# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Image features as points in a plane (t-SNE)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from mmclca.datasets.batches import Batch
from mmclca.models.classifiers import extract_feature
from mmclca.utils.extras import require
from mmclca.utils.messages import warn

from .figures import save_figure

# ten colors that the color-blind tell apart (arXiv:2107.02270)
COLORS = [
    '#3f90da',
    '#ffa90e',
    '#bd1f01',
    '#94a4a2',
    '#832db6',
    '#a96b59',
    '#e76300',
    '#b9ac70',
    '#717581',
    '#92dadd',
]
BOX = dict(facecolor='white', alpha=0.75, linewidth=0, pad=1.5)
NAME = dict(fontsize=9, ha='center', va='center', bbox=BOX, zorder=100)
MARKERS = 'o^sDvPX*<>'


@torch.no_grad()
def collect(
    batches: Iterable[Batch], look: Callable[[Tensor], Tensor], dim: int = 0
) -> tuple[Tensor, list[int]]:
    """Concatenate function outputs over batches, with labels.

    ``dim`` is the image dimension of the outputs, which are moved to the CPU.
    """
    features, labels = [], []
    for batch in batches:
        images: Tensor = batch.images  # not None: datasets raise if unreadable
        features.append(look(images).cpu())
        labels += batch.labels
    return torch.cat(features, dim), labels


def image_features(
    model: nn.Module, batches: Iterable[Batch], stage: str = 'pre_logits'
) -> tuple[Tensor, list[int]]:
    """Extract one feature per image, (N, C), with labels."""
    return collect(
        batches, lambda x: extract_feature(model, x, stage).flatten(1).float()
    )


def tsne(features: Tensor, **options) -> np.ndarray:
    """Run scikit-learn's t-SNE on features (N, C), deterministically.

    `Visualizing Data using t-SNE`. ``options`` are the arguments of
    ``sklearn.manifold.TSNE``, with other defaults: ``learning_rate=200``,
    ``init='random'``, ``random_state=0``. For few images, ``perplexity`` is
    reduced to a third of their number, with a message.
    """
    require('sklearn', extra='pictures')
    from sklearn.manifold import TSNE

    defaults = dict(learning_rate=200.0, init='random', random_state=0)
    options = defaults | options
    few = max(1, (len(features) - 1) / 3)
    if options.get('perplexity', 30) >= len(features):
        options['perplexity'] = few
        warn(f'perplexity reduced to {few:.3g}')
    return TSNE(**options).fit_transform(features.numpy())


def draw_points(
    points: np.ndarray,
    labels: Sequence[int],
    classes: Sequence[str],
    out: str,
    legend: bool = False,
) -> None:
    """Draw points (N, 2) or (N, 3) in the color of their class.

    ``classes`` are all class names. ``legend`` writes the names next to the
    plot instead of at the median of their points.
    """
    figure = Figure(figsize=(7, 6), layout='constrained')
    flat = points.shape[1] == 2
    # Axes or Axes3D, whose methods take one more coordinate
    axis: Any = figure.add_subplot(projection=None if flat else '3d')
    axis.set(xticks=[], yticks=[], title=f't-SNE of {len(points)} images')
    for n, label in enumerate(sorted(set(labels))):
        members = points[np.asarray(labels) == label]
        marker = MARKERS[n // len(COLORS) % len(MARKERS)]
        look = dict(marker=marker, s=28, linewidths=0, alpha=0.75)
        color = COLORS[n % len(COLORS)]
        axis.scatter(*members.T, color=color, label=classes[label], **look)
        if not legend:
            axis.text(*np.median(members, axis=0), classes[label], **NAME)
    if legend:
        figure.legend(loc='outside right upper', fontsize=9, frameon=False)
    save_figure(figure, out)
