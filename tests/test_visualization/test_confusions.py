# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
import torch

from mmclca.datasets.batches import Batch, select_per_class
from mmclca.visualization.confusions import (
    Predictions,
    draw_confusions,
    most_confused,
    predict,
)
from mmclca.visualization.figures import Panel


@pytest.fixture
def predictions():
    """Eight images in three classes; two red ones misclassified as blue."""
    labels = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    predicted = np.array([0, 2, 2, 0, 1, 1, 2, 0])
    paths = [f'{n}.png' for n in range(len(labels))]
    return Predictions(paths, labels, predicted, ['red', 'green', 'blue'])


def test_matrix_counts_predictions_per_class(predictions):
    wanted = [[2, 0, 2], [0, 2, 0], [1, 0, 1]]
    assert predictions.matrix().tolist() == wanted
    assert predictions.classified_as(0, 2) == predictions.paths[1:3]
    assert predictions.classified_as(1, 0) == []


def test_most_confused_pairs_come_first():
    matrix = np.array([[9, 0, 1, 0], [3, 9, 0, 0], [1, 0, 9, 4], [0, 0, 0, 9]])
    assert most_confused(matrix, 9) == [(2, 3), (1, 0), (0, 2)]
    assert most_confused(matrix, 1) == [(2, 3)]
    assert most_confused(np.eye(3, dtype=int), 2) == []


def test_draw_confusions_has_a_row_per_pair(
    predictions, tmp_path, monkeypatch
):
    drawn = []
    monkeypatch.setattr(
        'mmclca.visualization.confusions.draw_cells',
        lambda figure, rows, width: drawn.extend(rows),
    )
    monkeypatch.setattr(
        'mmclca.visualization.confusions.draw_photo',
        lambda path: Panel(np.zeros((2, 2, 3), np.uint8), note=path),
    )
    predictions.predicted[6] = 1  # without a correct blue image
    draw_confusions(predictions, tmp_path / 'out.png', pairs=1, examples=2)
    (row,) = drawn
    assert [cell and (cell.title, cell.note) for cell in row] == [
        *(('red, correct', '0.png'), ('', '3.png')),
        *(('red, classified as blue', '1.png'), ('', '2.png')),
        *(('blue, correct: none', ''), None),
    ]
    predictions.predicted = predictions.labels
    with pytest.raises(ValueError, match='all 8 images'):
        draw_confusions(predictions, tmp_path / 'out.png')


def test_predict_joins_batches():
    images = torch.zeros(3, 3, 2, 2)
    images[[0, 1, 2], [2, 0, 1]] = 1
    split = Batch(images[:2], [2, 1], ['a', 'b']), Batch(images[2:], [1], 'c')
    found = predict(lambda x, mode: x.mean(dim=(2, 3)), split, 'xyz')
    assert found.paths == ['a', 'b', 'c'] and found.classes == ['x', 'y', 'z']
    assert found.labels.tolist() == [2, 1, 1]
    assert found.predicted.tolist() == [2, 0, 1]


def test_first_of_each_class_selects_positions():
    labels = [1, 0, 1, 1, 2, 0]
    assert select_per_class(labels, 2) == [1, 5, 0, 2, 4]
    assert select_per_class(labels, 1, [2, 1, 7]) == [4, 0]
