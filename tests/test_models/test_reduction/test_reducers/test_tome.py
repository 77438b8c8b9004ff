# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from unittest.mock import patch

import pytest
import torch
from mmengine.logging import MMLogger
from toy_reducers import shape

from mmclca.models.reduction.reducers import ToMe
from mmclca.models.reduction.reducers.tome import match


def slow_match(rows, num_merged):
    """Return the old tokens in each new token, for one image."""
    rows = [row / row.norm() for row in rows]
    even, odd = range(0, len(rows), 2), range(1, len(rows), 2)
    pairs = []
    for i in even[1:]:  # not CLS
        likes = {j: float(rows[i] @ rows[j]) for j in odd}
        partner = max(likes, key=likes.get)
        pairs.append((likes[partner], i, partner))
    pairs = sorted(pairs, reverse=True)[:num_merged]
    partners = {i: j for _, i, j in pairs}
    made = [[i] for i in even if i not in partners]
    for j in odd:
        made.append(sorted([j, *(i for i in partners if partners[i] == j)]))
    return made


def made_of(target, num_tokens):
    """Return the old tokens in each new token, from target positions."""
    made = [[] for _ in range(num_tokens)]
    for token, position in enumerate(target):
        made[position].append(token)
    return made


@pytest.mark.parametrize('num_tokens', [3, 4, 9, 14])
def test_match_equals_loop(num_tokens):
    metric = torch.randn(3, num_tokens, 4).double()
    for num_merged in range((num_tokens - 1) // 2 + 1):
        target, num_left = match(metric, num_merged)
        assert num_left == num_tokens - num_merged
        for row, rows in zip(target.tolist(), metric, strict=True):
            assert made_of(row, num_left) == slow_match(rows, num_merged)


def test_match_excludes_cls_if_tokens_are_equal():
    metric = torch.ones(1, 7, 4)
    target, num_tokens = match(metric, 3)
    assert num_tokens == 4
    assert target[0, 0] == 0
    assert made_of(target[0].tolist(), 4)[0] == [0]


def warnings_of(**options):
    """Warnings when a ToMe for 196 patches is built."""
    with patch.object(MMLogger, 'get_current_instance') as logger:
        ToMe(backbone=shape(num_patches=196), **options)
    return [call.args[0] for call in logger().warning.mock_calls]


@pytest.mark.parametrize(
    'options, named',
    [
        (dict(keep_rate=0.1), '[19, 1, 0] of 196'),
        (dict(keep_rate=(1, 1, 0.4)), '[196, 196, 78] of 196'),
        (dict(num_tokens=(98, 48, 30)), '[98, 48, 30] of 196'),
        (dict(keep_rate=0.5), None),
        (dict(num_tokens=(98, 49, 25)), None),
    ],
)
def test_tome_warns_if_counts_cannot_be_reached(options, named):
    messages = warnings_of(**options)
    assert len(messages) == (named is not None)
    assert all(named in message for message in messages)
