# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer, check_number

from ..attention import Attended, masked_softmax
from ..learned_counts import (
    LearnedCounts,
    get_learned_counts,
    straight_through,
)
from ..prune_merge import (
    get_decision,
    get_sizes,
    mask_and_merge,
    prune_and_merge,
)
from ..tokens import Tokens
from .base import VIT_BASE, BackboneShape
from .counted import CountedReducer


@MODELS.register_module()
class DiffRate(CountedReducer):
    """Prune the tokens with the least CLS attention and merge others.

    `DiffRate: Differentiable Compression Rate for Efficient Vision
    Transformers`. Tokens are ranked by CLS attention. The lowest ones are
    dropped, the ones before are merged, by plain averages, into the most
    similar of the first tokens. Token sizes, whose logarithm is added to the
    logits in all later layers, grow by the merged sizes times the similarity.
    Counts are exact at any keep rate.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        merge_share (float): Share of the removed tokens that are merged, from
            0 to 1. Defaults to 0.5.
        clamp (bool): Whether negative similarities are set to 0 in sizes, as
            in the release. Defaults to True.
        prune (Sequence[int], optional): Remaining patches after pruning, per
            stage; replaces ``keep_rate`` and ``num_tokens``. Defaults to None.
        merge (Sequence[int], optional): With ``prune``, remaining patches
            after merging; a count above that of ``prune``, as learned counts
            may be, merges nothing. Defaults to None.
        target (float, optional): Cost of the layers in 1e9
            multiply-accumulates for which counts are learned; replaces all
            counts: training masks tokens and a loss moves the cost to the
            target. Defaults to None.
        granularity (int): Step between candidate counts. Defaults to 1.
        loss_weight (float): Loss weight. Defaults to 5.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.

    Raises:
        Error: As :class:`CountedReducer`; if ``merge_share`` is outside 0
            to 1, ``prune`` and ``merge`` are not counts, ``target`` or
            ``loss_weight`` is negative, ``granularity`` is not a positive
            integer, or counts are set more than once.
    """

    summary = 'drop some patches, merge others into important ones'
    needs_cls_token = True
    count_settings = ('num_tokens', 'prune', 'merge', 'target')
    fixed = 'learns its counts with target='

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        *,
        merge_share: float = 0.5,
        clamp: bool = True,
        prune: Sequence[int] | None = None,
        merge: Sequence[int] | None = None,
        target: float | None = None,
        granularity: int = 1,
        loss_weight: float = 5.0,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        check_number(merge_share=merge_share, maximum=1)
        check_number(loss_weight=loss_weight)
        check_integer(granularity=granularity)
        self.merge_share = merge_share
        self.clamp = clamp
        self.prune, self.merge = prune, merge
        self.target, self.loss_weight = target, loss_weight
        self.stages: Any = None  # a ModuleList of LearnedCounts
        steps = prune if merge is None else merge
        settings = keep_rate, num_tokens, steps, target
        if sum(setting is not None for setting in settings) > 1:
            raise Error(
                f'keep_rate={keep_rate!r}, num_tokens={num_tokens!r}, prune '
                f'or merge={steps!r}, target={target!r}: set only one'
            )
        if steps is not None:
            self.check_counts(prune=prune, merge=merge)
        if target is not None:
            check_number(target=target)
            self.stages = nn.ModuleList(
                LearnedCounts(self.num_patches, granularity)
                for _ in range(self.num_stages)
            )

    @property
    def has_loss(self) -> bool:
        """Whether counts are learned."""
        return self.stages is not None

    def steps(self, stage: int) -> tuple[int, int] | None:
        """Return the counts after pruning and merging, or None.

        None: the counts follow from ``keep_rate`` or ``num_tokens``.
        """
        if self.stages is not None:
            return get_learned_counts(self.stages[: stage + 1])
        if self.prune is None or self.merge is None:
            return None
        return self.prune[stage], self.merge[stage]

    def count_patches(self, stage: int, num_patches: int | None = None) -> int:
        steps = [self.steps(s) for s in range(stage + 1)]
        counts = [min(pair) for pair in steps if pair is not None]
        if not counts:
            return super().count_patches(stage, num_patches)
        return min(num_patches or self.num_patches, *counts)

    def count_pruned(
        self, tokens: Tokens, stage: int, num_removed: int
    ) -> int:
        """Return how many of the removed tokens are dropped, not merged."""
        steps = self.steps(stage)
        if steps is None:
            return num_removed - int(num_removed * self.merge_share)
        pruned = self.count_left(tokens, stage - 1) - steps[0]
        return min(max(0, pruned), num_removed)

    def after_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        cls = attended.q[:, :, :1]
        score = attended.weights(cls, self.softmax(tokens))[:, :, 0]
        score = score.mean(dim=1)[:, tokens.num_prefix :]
        if self.learns:
            last = self.count_left(tokens, stage - 1)
            counts = self.stages[stage]
            return mask_and_merge(tokens, score, counts, last, self.clamp)
        num_removed = self.count_removed(tokens, stage)
        if not num_removed:
            return tokens.unchanged()
        M = tokens.after_prefix.size(1)
        num_kept = M - self.count_pruned(tokens, stage, num_removed)
        return prune_and_merge(
            tokens, score, num_kept, M - num_removed, self.clamp
        )

    @property
    def learns(self) -> bool:
        """Whether tokens are masked to learn the counts."""
        return self.training and self.stages is not None

    def key_bias(self, tokens: Tokens) -> Tensor | None:
        if self.learns:
            return get_sizes(tokens).log()[:, None, None]
        return tokens.log_weight

    def softmax(self, tokens: Tokens):
        if not self.learns:
            return None
        return partial(masked_softmax, decision=get_decision(tokens))

    def loss(self, tokens: Tokens) -> dict[str, Tensor]:
        """Compute ``loss_flops``, the squared difference from the target."""
        if not self.learns:
            return {}
        error = (self.compute_gmacs() - self.target).square()
        return dict(loss_flops=self.loss_weight * error)

    def compute_gmacs(self) -> Tensor:
        """Compute the GMACs of the layers, with a gradient.

        The gradient reaches both counts of a stage equally, whichever is
        smaller, but not earlier stages. FFNs have 4 C hidden channels.
        """
        counts_at = dict(zip(self.reduce_at, self.stages, strict=True))
        C, left = self.embed_dims, 1 + self.num_patches
        total: Any = 0  # a tensor after a stage
        for layer in range(self.num_layers):
            entering = left
            if layer in counts_at:
                counts = counts_at[layer]
                steps = counts.prune() + 1, counts.merge() + 1
                least = torch.stack(steps).detach().amin()
                least = least.clamp(max=int(entering))
                left = straight_through(least, sum(steps))
            attention = 4 * entering * C**2 + 2 * entering**2 * C
            total = total + attention + 8 * left * C**2
        return total / 1e9
