# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from functools import partial

from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import integer, number

from ..attention import Attended, masked_softmax
from ..rates import (
    Rates,
    decision,
    gmacs,
    learned_counts,
    mask_and_merge,
    prune_and_merge,
    sizes,
)
from ..tokens import Tokens
from .base import CountedReducer


@MODELS.register_module()
class DiffRate(CountedReducer):
    """Drops the tokens that matter least, merges others into the best.

    `DiffRate: Differentiable Compression Rate for Efficient Vision
    Transformers`. Tokens are ordered by the attention of CLS; the last ones
    are dropped, those before them merged, as a plain average, into the most
    similar of the first. Sizes, whose logarithm is added to the logits in all
    later layers, grow by those of the merged tokens times the similarity.
    Counts are exact at any keep rate.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See there.
        merge_share (float): Share of the removed tokens that is merged, from
            0 to 1. Defaults to 0.5.
        clamp (bool): Whether negative similarities make no size smaller, as
            released. Defaults to True.
        prune (Sequence[int], optional): In place of both counts, patches
            that are left once some are dropped, one number a stage.
            Defaults to None.
        merge (Sequence[int], optional): With ``prune``, patches that are
            left once others are merged; where that is not fewer, as learned
            counts may have it, nothing is merged. Defaults to None.
        target (float, optional): In place of all counts, 1e9
            multiply-accumulates of the layers, for which counts are learned:
            in training tokens are masked, and a loss draws the cost to the
            target. Defaults to None.
        granularity (int): From one count that may be learned to the next.
            Defaults to 1.
        loss_weight (float): Weight of that loss. Defaults to 5.
        **backbone: See :class:`CountedReducer`.

    Raises:
        ValueError: As there, if ``merge_share`` is outside 0 to 1, if
            ``prune`` and ``merge`` are not counts, if ``target`` or
            ``loss_weight`` is negative or ``granularity`` no integer above 0,
            and if counts are given in more than one way.
    """

    summary = 'drop some patches, merge others into important ones'
    needs_cls_token = True

    def __init__(
        self,
        keep_rate=None,
        num_tokens=None,
        merge_share: float = 0.5,
        clamp: bool = True,
        prune: Sequence[int] | None = None,
        merge: Sequence[int] | None = None,
        target: float | None = None,
        granularity: int = 1,
        loss_weight: float = 5.0,
        **backbone,
    ):
        super().__init__(keep_rate, num_tokens, **backbone)
        number(merge_share=merge_share, most=1)
        number(loss_weight=loss_weight)
        integer(granularity=granularity)
        self.merge_share = merge_share
        self.clamp = clamp
        self.prune, self.merge = prune, merge
        self.target, self.loss_weight = target, loss_weight
        self.stages = None
        steps = prune if merge is None else merge
        ways = keep_rate, num_tokens, steps, target
        if sum(way is not None for way in ways) > 1:
            raise ValueError(
                f'keep_rate={keep_rate!r}, num_tokens={num_tokens!r}, prune '
                f'or merge={steps!r}, target={target!r}: set only one'
            )
        if steps is not None:
            self.check_counts(prune=prune, merge=merge)
        if target is not None:
            number(target=target)
            self.stages = nn.ModuleList(
                Rates(self.num_patches, granularity)
                for _ in range(self.num_stages)
            )

    @property
    def has_loss(self) -> bool:
        """Whether counts are learned."""
        return self.stages is not None

    def steps(self, stage: int) -> tuple[int, int] | None:
        """Count what pruning leaves, and merging; None by keep rate."""
        if self.stages is not None:
            return learned_counts(self.stages[: stage + 1])
        return self.prune and (self.prune[stage], self.merge[stage])

    def count(self, stage: int, num_patches: int | None = None) -> int:
        if stage < 0 or self.steps(stage) is None:
            return super().count(stage, num_patches)
        counts = [min(self.steps(s)) for s in range(stage + 1)]
        return min(num_patches or self.num_patches, *counts)

    def num_pruned(self, tokens: Tokens, stage: int, surplus: int) -> int:
        """Count the tokens that a stage drops of those it removes."""
        if self.steps(stage) is None:
            return surplus - int(surplus * self.merge_share)
        pruned = self.count_for(tokens, stage - 1) - self.steps(stage)[0]
        return min(max(0, pruned), surplus)

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        cls = attended.q[:, :, :1]
        score = attended.weights(cls, self.softmax(tokens))[:, :, 0]
        score = score.mean(dim=1)[:, tokens.num_prefix :]
        if self.learns:
            last = self.count_for(tokens, stage - 1)
            rates = self.stages[stage]
            return mask_and_merge(tokens, score, rates, last, self.clamp)
        surplus = self.surplus(tokens, stage)
        if not surplus:
            return tokens.unchanged()
        M = tokens.body.size(1)
        num_kept = M - self.num_pruned(tokens, stage, surplus)
        return prune_and_merge(
            tokens, score, num_kept, M - surplus, self.clamp
        )

    @property
    def learns(self) -> bool:
        """Whether tokens are masked, to learn how many."""
        return self.training and self.stages is not None

    def key_bias(self, tokens: Tokens) -> Tensor | None:
        if self.learns:
            return sizes(tokens).log()[:, None, None]
        return tokens.log_weight

    def softmax(self, tokens: Tokens):
        if not self.learns:
            return None
        return partial(masked_softmax, decision=decision(tokens))

    def loss(self, tokens: Tokens) -> dict[str, Tensor]:
        """Compute ``loss_flops``, the squared distance from the target."""
        if not self.learns:
            return {}
        error = (gmacs(self) - self.target).square()
        return dict(loss_flops=self.loss_weight * error)
