# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from small_models import traced
from torch.testing import assert_close

from mmclca.models.reduction.trace import Appended, Kept, Unchanged
from mmclca.visualization import survivor_maps

# Four patches are tokens 1 to 4. The first reduction keeps patches 2 and 0
# and fuses 1 and 3; the second one, after two cached tokens came, keeps
# patch 0 alone.
TRACE = [
    Kept(
        index=torch.tensor([[0, 3, 1]]),
        mix=torch.tensor([[[0.0, 0.0, 0.3, 0.0, 0.2]]]),
    ),
    Appended(2),
    Kept(index=torch.tensor([[0, 2]])),
]


def test_maps_by_hand():
    first, second = survivor_maps(traced(TRACE, 1, 4), (2, 2))
    assert_close(first, torch.tensor([[[1.0, 0.3], [1.0, 0.2]]]))
    assert_close(second, torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]))


def test_stage_without_a_reduction_has_a_map_too():
    trace = [Kept(index=torch.tensor([[0, 2, 4]])), Appended(1), Unchanged()]
    first, second = survivor_maps(traced(trace, 1, 4), (2, 2))
    assert_close(first, torch.tensor([[[0.0, 1.0], [0.0, 1.0]]]))
    assert_close(second, first)
