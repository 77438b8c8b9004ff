# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from numbers import Real

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.registry import MODELS

from ..attention import Attended
from ..keep_rates import check_per_stage
from ..operators import stable_order
from ..tokens import Tokens
from ..trace import ranks
from .base import VIT_BASE, BackboneShape
from .counted import HalvingReducer


@torch.no_grad()
def match_by_energy(
    metric: Tensor, num_merged: int, margin: float, bsm: bool
) -> Tensor:
    """Choose the tokens to merge: those with many similar tokens.

    ``metric`` (B, M, D) has unit length, and tokens are similar above the
    cosine similarity ``margin``. With ``bsm``, the most similar pairs of all
    tokens merge; otherwise all pairs among the tokens of highest energy.
    Returns new positions (B, M): unmerged tokens first, then merge targets.
    """
    B, M, _ = metric.shape
    similarity = metric @ metric.transpose(1, 2)
    energy = F.elu(similarity - margin).mean(dim=-1)
    order = stable_order(energy, descending=True)
    num_paired = M if bsm else 2 * num_merged
    index = order[:, :num_paired].unsqueeze(-1)
    y = metric.gather(1, index.expand(-1, -1, metric.size(-1)))
    best, partner = (y[:, ::2] @ y[:, 1::2].transpose(1, 2)).max(dim=-1)
    rank = ranks(best)
    # tokens outside pairs and unmerged sources
    num_left = M - num_paired // 2 - num_merged
    target = torch.arange(M, device=metric.device).repeat(B, 1) - num_paired
    pairs = target[:, :num_paired]  # a view
    pairs[:, ::2] = torch.where(
        rank < num_merged, num_left + partner, rank - num_merged
    )
    into = torch.arange(num_paired // 2, device=metric.device)
    pairs[:, 1::2] = num_left + into
    return torch.zeros_like(target).scatter(1, order, target)


@MODELS.register_module()
class PiToMe(HalvingReducer):
    """Merge tokens with many similar tokens, protect the rest.

    `Accelerating Transformers with Spectrum-Preserving Token Merging`. The
    energy of a token measures how many tokens are similar to it. Tokens of
    high energy are matched alternately in this order, in place of the position
    order of :class:`ToMe`. Averages, sizes and the limit of one half are those
    of :class:`ToMe`.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        bsm (Sequence[bool], optional): Per stage, whether the most similar
            pairs of all tokens merge, or all pairs of the tokens of highest
            energy. Defaults to None, True before the middle layer.
        margin (Sequence[float], optional): Per stage, cosine similarity above
            which tokens count as similar. Defaults to None, 0.75 times the
            share of layers from the stage on.
        prop_attn (bool): Whether sizes bias the attention, not only the
            averages. Defaults to True.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.

    Raises:
        Error: As :class:`CountedReducer`, or if a list does not have one
            entry per stage.
    """

    summary = 'merge pairs of patches that have many similar ones'

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        *,
        bsm: Sequence[bool] | None = None,
        margin: Sequence[float] | None = None,
        prop_attn: bool = True,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        if bsm is None:
            bsm = [depth < 0.5 for depth in self.depths]
        if margin is None:
            margin = [0.75 * (1 - depth) for depth in self.depths]
        check_per_stage('bsm', bsm, self.num_stages, bool)
        check_per_stage('margin', margin, self.num_stages, Real)
        self.bsm = bsm
        self.margin = margin
        self.prop_attn = prop_attn

    def after_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        num_merged = self.count_merged(tokens, stage)
        if num_merged <= 0:
            return tokens.unchanged()
        metric = attended.k.mean(dim=1)[:, tokens.num_prefix :]
        target = match_by_energy(
            F.normalize(metric, dim=-1),
            num_merged,
            self.margin[stage],
            self.bsm[stage],
        )
        return tokens.merge_after_prefix(
            target, tokens.after_prefix.size(1) - num_merged
        )
