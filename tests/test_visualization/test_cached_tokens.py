# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from small_models import traced

from mmclca.models.reduction.trace import Appended, Kept, Merged, Unchanged
from mmclca.visualization import Cached, cached_by_stage


def test_counts_by_hand():
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
    stages = cached_by_stage(traced(trace, 2, 2))
    left = [[one.num_left for one in stage] for stage in stages]
    # where it is merged with a patch, a cached token is none any more
    assert left == [[1, 0], [3, 2], [2, 2], [0, 1]]
    put_back = [[one.num_put_back for one in stage] for stage in stages]
    assert put_back == [[2, 2], [0, 0], [0, 0], [0, 0]]


def test_registers_are_no_cached_tokens():
    trace = [Appended(3, cached=False), Kept(torch.tensor([[0, 1, 3, 4]]))]
    assert cached_by_stage(traced(trace, 1, 4)) == []
    trace.insert(1, Appended(1))
    assert cached_by_stage(traced(trace, 1, 4)) == [[Cached(0, 0)]]
