# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmclca.datasets.grouped_splits import GroupedSplits

LABELS = np.repeat([0, 1, 2, 3], [1, 2, 5, 12])


def test_folds_test_every_image_once_except_single_ones():
    folds = list(GroupedSplits(LABELS).folds(5, seed=0))
    tested = np.concatenate([test for _, test in folds])
    assert sorted(tested) == list(range(1, 20))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(20))
        assert 0 in train and {*LABELS[train]} == {0, 1, 2, 3}
    counts = [np.bincount(LABELS[test], minlength=4) for _, test in folds]
    assert (np.ptp(counts, axis=0) <= 1).all()  # stratified


def test_folds_keep_groups_together_and_depend_on_the_seed():
    plants = [f'{label}-{i % 4}' for i, label in enumerate(LABELS)]
    plants[-3:] = ['tray'] * 3
    splits, found = GroupedSplits(LABELS, plants), []
    for seed in (0, 0, 1, 2, 3):
        folds = [*splits.folds(3, seed)]
        for train, test in folds:
            assert not {plants[i] for i in train} & {plants[i] for i in test}
            assert {*LABELS[test]} <= {*LABELS[train]}
        found.append([test.tolist() for _, test in folds])
    assert found[0] == found[1] != found[2]


def test_folds_never_test_all_groups_of_a_class():
    labels, plants = [0, 0, 0, 0, 1, 1, 1], list('aabbccc')
    tested = [test for _, test in GroupedSplits(labels, plants).folds(5, 0)]
    assert sorted(sorted({*test}) for test in tested) == [[0, 1], [2, 3]]


def test_folds_keep_groups_of_two_classes_together():
    """The only group of class 1 has a photo of class 0: neither is tested."""
    labels, plants = [0, 0, 0, 0, 1], list('abcdd')
    tested = [test for _, test in GroupedSplits(labels, plants).folds(4, 0)]
    assert sorted(np.concatenate(tested)) == [0, 1, 2]


def test_folds_are_fewer_if_classes_are_small():
    assert len(list(GroupedSplits([0, 0, 0, 1, 1]).folds(5, 0))) == 3
    assert not list(GroupedSplits([0, 1, 2]).folds(5, 0))


def test_draw_selects_groups_per_class():
    numbers = np.array([2, 1, 2, 3])
    drawn = GroupedSplits(LABELS).draw(numbers, seed=3)
    assert np.bincount(LABELS[drawn]).tolist() == [1, 1, 2, 3]
    groups = np.arange(20) // 2
    splits = GroupedSplits(np.zeros(20, int), groups)
    drawn = splits.draw(np.array([3]), seed=0)
    assert len(drawn) == 6 and len({*groups[drawn]}) == 3


def test_groups_and_labels_must_have_equal_length():
    with pytest.raises(ValueError, match='groups'):
        GroupedSplits([0, 0, 1], ['a', 'b'])
