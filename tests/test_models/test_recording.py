# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Patches and cached tokens by stage, from traces written by hand."""

import torch
from small_models import traced
from torch.testing import assert_close

from mmclca.models.recording import (
    assigned,
    cached_by_stage,
    stage_weights,
    survivor_maps,
)
from mmclca.models.reduction.trace import Appended, Kept, Merged, Unchanged


def test_survivors():
    # Four patches are tokens 1 to 4. The first reduction keeps patches 2 and
    # 0 and fuses 1 and 3; the second one, after two cached tokens came, keeps
    # patch 0 alone; the third one reduces nothing.
    mix = torch.tensor([[[0.0, 0.0, 0.3, 0.0, 0.2]]])
    trace = [
        Kept(torch.tensor([[0, 3, 1]]), mix),
        *(Appended(2), Kept(torch.tensor([[0, 2]])), Unchanged()),
    ]
    first, second, third = survivor_maps(traced(trace, 1, 4), (2, 2))
    assert_close(first, torch.tensor([[[1.0, 0.3], [1.0, 0.2]]]))
    assert_close(second, torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]))
    assert_close(third, second)


def test_dropped_patches_have_no_token_and_equal_ones_the_first():
    trace = [
        Kept(torch.tensor([[0, 4, 2]])),
        Merged(torch.tensor([[0, 1, 1]]), torch.tensor([[1.0, 0.5, 0.5]]), 2),
        Kept(torch.tensor([[0, 1, 1]])),  # equal shares: the first token
    ]
    stages = stage_weights(traced(trace, 1, 4))
    kept, *merged = [assigned(weights).tolist() for weights in stages]
    assert kept == [[-1, 2, -1, 1]]
    assert merged == [[[-1, 1, -1, 1]]] * 2


def test_cached_tokens():
    # [CLS | two patches | register | CLR], then [CLS | patch | CLR | two put
    # back], of which a token each is fused, and dropped
    first = torch.tensor([[0, 2, 4], [0, 1, 2]])
    last = torch.tensor([[0, 1, 1, 2, 3]] * 2)
    trace = [
        *(Appended(1, cached=False), Appended(1)),
        *(Kept(first), Appended(2)),
        *(Unchanged(), Merged(last, torch.full((2, 5), 0.5), 4)),
        Kept(torch.tensor([[0, 1], [0, 3]])),
    ]
    # left, put back; merged with a patch, a cached token is none any more
    wanted = [[(1, 2), (0, 2)], [(3, 0), (2, 0)], [(2, 0)] * 2]
    assert cached_by_stage(traced(trace, 2, 2)) == [*wanted, [(0, 0), (1, 0)]]


def test_registers_are_no_cached_tokens():
    trace = [Appended(3, cached=False), Kept(torch.tensor([[0, 1, 3, 4]]))]
    assert cached_by_stage(traced(trace, 1, 4)) == []
    trace.insert(1, Appended(1))
    assert cached_by_stage(traced(trace, 1, 4)) == [[(0, 0)]]
