# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.registry import MODELS

from ..attention import masked_softmax
from ..tokens import Masked, Tokens
from .counted import CountedReducer
from .start import start_linear


class Predictor(nn.Module):
    """Log-probabilities of keeping and of dropping each token.

    Half of the channels look at the token, half at the average of those that
    are still kept. `DynamicViT`, section 3.2, equations 2 to 5.

    Args:
        embed_dims (int): Channels C, a multiple of 4.
    """

    def __init__(self, embed_dims: int):
        super().__init__()
        self.in_conv = nn.Sequential(
            nn.LayerNorm(embed_dims),
            nn.Linear(embed_dims, embed_dims),
            nn.GELU(),
        )
        self.out_conv = nn.Sequential(
            nn.Linear(embed_dims, embed_dims // 2),
            nn.GELU(),
            nn.Linear(embed_dims // 2, embed_dims // 4),
            nn.GELU(),
            nn.Linear(embed_dims // 4, 2),
            nn.LogSoftmax(dim=-1),
        )
        start_linear(self)

    def forward(self, y: Tensor, counts: Tensor) -> Tensor:
        """Tokens (B, N, C) and whether each counts, (B, N): (B, N, 2)."""
        own, shared = self.in_conv(y).chunk(2, dim=-1)
        counts = counts.unsqueeze(-1)
        total = counts.sum(dim=1, keepdim=True).clamp(min=1)
        average = (counts * shared).sum(dim=1, keepdim=True) / total + 1e-6
        return self.out_conv(torch.cat((own, average.expand_as(own)), dim=-1))


def draw(scores: Tensor, counts: Tensor) -> Tensor:
    """Sample which of the tokens that count are kept.

    Args:
        scores (Tensor): Log-probabilities (B, N - 1, 2).
        counts (Tensor): 1 for those that count, else 0, (B, N - 1).

    Returns:
        Tensor: 1 for a token kept, CLS always, and 0 for one dropped, (B, N).
    """
    drawn = F.gumbel_softmax(scores, hard=True)[..., 0] * counts
    return F.pad(drawn, (1, 0), value=1.0)


def from_start(tokens: Tokens) -> Tensor:
    """1 for tokens after CLS that were there ahead of the first stage.

    0 for those that the cache put back since; (B, N - 1).
    """
    first = tokens.trace[:1] if tokens.with_cache else []  # the CLR tokens
    num_tokens = 1 + tokens.num_patches + sum(r.num_tokens for r in first)
    rows = tokens.x.new_ones(tokens.x.size(0), num_tokens, 1)
    for record in tokens.trace[len(first) :]:
        rows = record.apply(rows)
    return rows[:, 1:, 0]


@MODELS.register_module()
class DynamicViT(CountedReducer):
    """Learns which tokens to drop.

    `DynamicViT: Efficient Vision Transformers with Dynamic Token
    Sparsification`. Ahead of a stage a small network rates the tokens after
    CLS. In training a sample of its decisions (Gumbel-softmax) masks the
    attention of this layer and all later ones, and nothing is removed; the
    ratio loss draws the share kept towards the keep rate. In evaluation the
    best rated are kept: of the initial patches, as :class:`CountedReducer`
    says, and with a cache ``int(keep_rate * (M - 1))`` of the M tokens after
    CLS. Recovered tokens are then left out of the average that the network
    sees, but not in training, as in the CLCA authors' models.

    Args:
        keep_rate (float | Sequence[float]): See :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See there.
        loss_weight (float): Weight of the ratio loss. Defaults to 2.
        **backbone: See :class:`CountedReducer`.
    """

    def __init__(
        self,
        keep_rate=1.0,
        num_tokens=None,
        loss_weight: float = 2.0,
        **backbone,
    ):
        super().__init__(keep_rate, num_tokens, **backbone)
        self.loss_weight = loss_weight
        self.stages = nn.ModuleList(
            Predictor(self.embed_dims) for _ in range(self.num_stages)
        )

    def before(self, tokens: Tokens, stage: int) -> Tokens:
        y = tokens.x[:, 1:]
        if self.training:
            counts = torch.ones_like(y[..., 0])
            if tokens.weight is not None:
                counts = tokens.weight[:, 1:]
            return tokens.mask(draw(self.stages[stage](y, counts), counts))
        counts = from_start(tokens)
        score = self.stages[stage](y, counts)[..., 0]
        # where nothing is left to compare with, the first ones are kept
        score = score * counts.any(dim=1, keepdim=True)
        order = score.argsort(dim=1, descending=True, stable=True)
        num_kept = self.num_kept(tokens, stage)
        return tokens.gather(F.pad(order[:, :num_kept] + 1, (1, 0)))

    def num_kept(self, tokens: Tokens, stage: int) -> int:
        """Tokens after CLS that a stage keeps in evaluation."""
        available = tokens.x.size(1) - 1
        if self.num_tokens is None and tokens.with_cache:
            return max(1, int((available - 1) * self.keep_rates[stage]))
        return min(self.count_for(tokens, stage), available)

    def softmax(self, tokens: Tokens):
        if not self.training:
            return None
        decision = tokens.weight
        if decision is None:
            decision = tokens.x.new_ones(1, tokens.x.size(1))
        return partial(masked_softmax, decision=decision)

    def loss(self, tokens: Tokens) -> dict[str, Tensor]:
        """``loss_ratio``: `DynamicViT`, section 3.4, equation 16."""
        kept = [
            record.decision[:, 1:].mean(dim=1)
            for record in tokens.trace
            if isinstance(record, Masked)
        ]
        if not kept:
            return {}
        goals = [self.share(stage) for stage in range(self.num_stages)]
        goals = kept[0].new_tensor(goals).unsqueeze(1)
        ratio = (torch.stack(kept) - goals).square().mean()
        return dict(loss_ratio=self.loss_weight * ratio)
