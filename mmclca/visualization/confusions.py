# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Most confused classes, with example images."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from torch import nn

from mmclca.datasets.batches import Batch
from mmclca.errors import Error
from mmclca.utils.extras import require

from .figures import Panel, draw_cells, draw_photo, save_figure


@dataclass
class Predictions:
    """Image paths, labels (N,), predicted labels (N,) and class names."""

    paths: list[str]
    labels: np.ndarray
    predicted: np.ndarray
    classes: list[str]

    def matrix(self) -> np.ndarray:
        """Confusion matrix: classes in rows, predicted classes in columns."""
        counts = np.zeros([len(self.classes)] * 2, dtype=int)
        np.add.at(counts, (self.labels, self.predicted), 1)
        return counts

    def classified_as(self, label: int, predicted: int) -> list[str]:
        """List the images of a class with a certain prediction."""
        chosen = (self.labels == label) & (self.predicted == predicted)
        return [self.paths[n] for n in np.flatnonzero(chosen)]


@torch.no_grad()
def predict(
    model: nn.Module, batches: Iterable[Batch], classes: Sequence[str]
) -> Predictions:
    """Classify image batches."""
    paths, labels, predicted = [], [], []
    for batch in batches:
        scores = model(batch.images, mode='tensor')
        predicted += scores.argmax(dim=1).tolist()
        labels += batch.labels
        paths += batch.paths
    return Predictions(
        paths, np.array(labels), np.array(predicted), list(classes)
    )


def most_confused(matrix: np.ndarray, number: int) -> list[tuple[int, int]]:
    """Find the most confused class pairs.

    Both directions are added up; in each pair, the class that is more often
    misclassified comes first. Pairs without confusion are omitted.
    """
    both = np.triu(matrix + matrix.T, k=1)
    order = np.argsort(-both, axis=None, kind='stable')[:number]
    pairs = [divmod(int(position), len(matrix)) for position in order]
    return [
        (a, b) if matrix[a, b] >= matrix[b, a] else (b, a)
        for a, b in pairs
        if both[a, b]
    ]


def draw_confusions(
    predictions: Predictions, out: str, pairs: int = 5, examples: int = 3
) -> None:
    """Draw the confusion matrix for the most confused classes, with examples.

    Below the matrix is one row per pair: correct images of the first class,
    its images misclassified as the second class, and correct images of the
    second. ``pairs`` and ``examples`` (images per kind) are maximum numbers.
    Raises an Error if all images are correct.
    """
    matrix = predictions.matrix()
    confused = most_confused(matrix, pairs)
    if not confused:
        number = len(predictions.paths)
        raise Error(f'no confusions: all {number} images are correct')
    drawn_classes = list(dict.fromkeys(chain.from_iterable(confused)))
    side = 1.2 + 0.45 * len(drawn_classes)
    width = max(3.2 * examples, side + 2)
    heights = side, 1.3 * len(confused) + 0.6
    figure = Figure((width, sum(heights)), layout='constrained')
    top, below = figure.subfigures(2, 1, height_ratios=heights)
    _draw_matrix(top, matrix, drawn_classes, predictions.classes)
    rows = [_examples(predictions, pair, examples) for pair in confused]
    draw_cells(below, rows, width)
    save_figure(figure, out)


def _draw_matrix(figure, matrix, drawn_classes, classes) -> None:
    require('sklearn', extra='pictures')
    from sklearn.metrics import ConfusionMatrixDisplay

    part = matrix[np.ix_(drawn_classes, drawn_classes)]
    drawn = ConfusionMatrixDisplay(
        part, display_labels=[classes[n] for n in drawn_classes]
    )
    # the square root makes small numbers, the confusions, distinguishable
    norm = PowerNorm(0.5, 0, part.max())
    axis = figure.subplots()
    drawn.plot(cmap='cividis', ax=axis, colorbar=False, im_kw=dict(norm=norm))
    for label, value in zip(drawn.text_.flat, part.flat, strict=True):
        label.set_color('black' if norm(value) > 0.6 else 'white')
    axis.tick_params(axis='x', labelrotation=45)
    axis.set_title(
        f'most confused of {len(classes)} classes '
        f'({np.trace(matrix)} of {matrix.sum()} images correct)',
        fontsize=10,
    )


def _examples(predictions, pair, number: int) -> list[Panel | None]:
    """Make the row of a pair: three groups with ``number`` cells each."""
    label, other = pair
    first, second = (predictions.classes[n] for n in pair)
    groups = {
        f'{first}, correct': (label, label),
        f'{first}, classified as {second}': (label, other),
        f'{second}, correct': (other, other),
    }
    row = []
    for title, (true_label, predicted) in groups.items():
        paths = predictions.classified_as(true_label, predicted)[:number]
        cells = [draw_photo(path) for path in paths] or [Panel(None)]
        cells[0].title = title if paths else f'{title}: none'
        row += [*cells, *[None] * (number - len(cells))]
    return row
