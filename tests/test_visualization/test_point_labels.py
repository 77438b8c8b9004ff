# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from matplotlib.figure import Figure

from mmclca.visualization.point_labels import label_points


def test_of_texts_that_would_overlap_the_first_is_written():
    axis = Figure(figsize=(2, 2), dpi=36).add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, 144), ylim=(0, 144))  # points of 1/72 inch
    points = [
        (10, 10, 'first'),
        (19, 14, 'near'),
        (20, 10, 'beside'),
        (10, 15, 'above'),
        (12, 12, 'between'),
    ]
    label_points(axis, points, lambda one, other: 10, 5, xytext=(0, 4))
    written = [text.get_text() for text in axis.texts]
    assert written == ['first', 'beside', 'above']


def test_width_may_depend_on_both_texts():
    axis = Figure(figsize=(2, 2)).add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, 144), ylim=(0, 144))
    points = [(10, 10, 'ab'), (14, 10, 'cd'), (13, 10, 'e')]
    label_points(axis, points, lambda a, b: len(a + b), 5, xytext=(0, 0))
    assert [text.get_text() for text in axis.texts] == ['ab', 'cd']
