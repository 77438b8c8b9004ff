# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Token counts of DiffRate that training learns."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.utils.torch_versions import is_exporting


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """Return ``hard`` with the gradient of ``soft``."""
    return hard + (soft - soft.detach())


class LearnedCount(nn.Module):
    """Learned number of patches to keep: P, P - granularity, and so on."""

    candidates: Tensor

    def __init__(self, num_patches: int, granularity: int = 1):
        super().__init__()
        candidates = torch.arange(num_patches, 0, -granularity)
        self.register_buffer('candidates', candidates, persistent=False)
        self.logits = nn.Parameter(torch.zeros(len(candidates)))

    def forward(self) -> Tensor:
        """Return the count, an integer-valued tensor with a gradient."""
        expected = (self.logits.softmax(0) * self.candidates).sum()
        return straight_through(expected.detach().ceil(), expected)

    def mask(self) -> Tensor:
        """Return 1 for kept ranks, else 0, with a gradient, (P,)."""
        rank = torch.arange(int(self.candidates[0]), device=self.logits.device)
        kept = self.candidates > rank.unsqueeze(1)  # (P, candidates)
        chance = (kept * self.logits.softmax(0)).sum(dim=1)
        return straight_through((rank < self()).to(chance), chance)


class LearnedCounts(nn.Module):
    """Learned stage counts, after pruning and after merging."""

    def __init__(self, num_patches: int, granularity: int = 1):
        super().__init__()
        self.prune = LearnedCount(num_patches, granularity)
        self.merge = LearnedCount(num_patches, granularity)


def get_learned_counts(stages: Iterable[LearnedCounts]) -> tuple[int, int]:
    """Return the token counts after pruning and after merging.

    Like given counts, they do not increase from stage to stage.
    """
    if is_exporting():
        raise Error(
            'DiffRate with target= cannot be exported, which needs fixed '
            'counts; set prune and merge to the values of steps(stage)'
        )
    prune = min(int(rates.prune()) for rates in stages)
    return prune, min(int(rates.merge()) for rates in stages)
