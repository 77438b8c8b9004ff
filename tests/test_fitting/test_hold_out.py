# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest

from mmclca.datasets.photographs import Photographs
from mmclca.fitting.hold_out import hold_out, is_enough


def photographs(*counts, groups=None):
    labels = [i for i, n in enumerate(counts) for _ in range(n)]
    paths = [f'{n}.jpg' for n in range(len(labels))]
    classes = [f'class {i}' for i in range(len(counts))]
    return Photographs(paths, labels, classes, groups, [''] * len(paths), '.')


def test_a_fifth_of_each_class():
    found = photographs(10, 5, 1)
    train, held_out = hold_out(found)
    assert sorted(train + held_out) == [*range(16)]
    assert [found.labels[i] for i in held_out].count(0) == 2
    assert [found.labels[i] for i in held_out].count(1) == 1
    assert 15 in train  # the only one of its class


def test_groups_are_not_parted():
    groups = ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd']
    train, held_out = hold_out(photographs(4, 4, groups=groups))
    assert held_out
    assert not {groups[i] for i in train} & {groups[i] for i in held_out}


@pytest.mark.parametrize(
    'counts, enough',
    [
        ((100, 100), True),
        ((100, 99), False),
        ((8,) * 25, True),
        ((7,) * 30, False),
        ((300, 3, 3), False),
    ],
)
def test_how_many_tell_how_good_a_model_is(counts, enough):
    assert is_enough(photographs(*counts)) is enough
