# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_number

from ..attention import masked_softmax
from ..operators import stable_order
from ..tokens import Tokens, initial_tokens
from ..trace import Masked
from .base import VIT_BASE, BackboneShape, init_linear
from .counted import CountedReducer


class Predictor(nn.Module):
    """Log-probabilities of keeping and dropping each token.

    Half of the channels describe the token, half the average of the kept
    tokens. `DynamicViT`, section 3.2, equations 2 to 5.
    """

    def __init__(self, embed_dims: int):
        super().__init__()
        if embed_dims % 4:
            raise Error(f'embed_dims={embed_dims} must be a multiple of 4')
        C = embed_dims
        self.in_conv = nn.Sequential(
            nn.LayerNorm(C), nn.Linear(C, C), nn.GELU()
        )
        self.out_conv = nn.Sequential(
            *(nn.Linear(C, C // 2), nn.GELU()),
            *(nn.Linear(C // 2, C // 4), nn.GELU()),
            *(nn.Linear(C // 4, 2), nn.LogSoftmax(dim=-1)),
        )
        init_linear(self)

    def forward(self, y: Tensor, counts: Tensor) -> Tensor:
        """Map tokens (B, N, C) and 1 per kept token (B, N) to (B, N, 2)."""
        local, shared = self.in_conv(y).chunk(2, dim=-1)
        counts = counts.unsqueeze(-1)
        total = counts.sum(dim=1, keepdim=True).clamp(min=1)
        average = (counts * shared).sum(dim=1, keepdim=True) / total + 1e-6
        return self.out_conv(
            torch.cat((local, average.expand_as(local)), dim=-1)
        )


def sample_kept(scores: Tensor, counts: Tensor, num_prefix: int = 1) -> Tensor:
    """Sample 1 for kept and 0 for dropped tokens, (B, N), with gradients.

    ``scores`` (B, N - num_prefix, 2) are log-probabilities, ``counts`` (B, N -
    num_prefix) is 1 for tokens kept so far. The prefix is always kept.
    """
    drawn = F.gumbel_softmax(scores, hard=True)[..., 0] * counts
    return F.pad(drawn, (num_prefix, 0), value=1.0)


@MODELS.register_module()
class DynamicViT(CountedReducer):
    """Drop tokens selected by a small learned network.

    `DynamicViT: Efficient Vision Transformers with Dynamic Token
    Sparsification`. A predictor scores the tokens after CLS before each stage.
    In training, a Gumbel-softmax sample of its decisions masks the attention
    of this and all later layers, no token is removed, and the ratio loss moves
    the kept share to the keep rate. Evaluation keeps the highest scores:
    counts as in :class:`CountedReducer`, or with a cache ``int(keep_rate * (M
    - 1))`` of the M tokens after CLS. As in the CLCA authors' models, the
    predictor's average excludes recovered tokens in evaluation, but not in
    training.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        loss_weight (float): Ratio loss weight. Defaults to 2.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.

    Raises:
        Error: As :class:`CountedReducer`, or if ``loss_weight`` is
            negative or the channels are not a multiple of 4.
    """

    summary = 'a small trained network chooses the patches to drop'
    keeps_places = True

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        *,
        loss_weight: float = 2.0,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        check_number(loss_weight=loss_weight)
        self.loss_weight = loss_weight
        self.stages = nn.ModuleList(
            Predictor(self.embed_dims) for _ in range(self.num_stages)
        )

    def before_layer(self, tokens: Tokens, stage: int) -> Tokens:
        return (self.mask if self.training else self.drop)(tokens, stage)

    def mask(self, tokens: Tokens, stage: int) -> Tokens:
        """Sample the tokens that later layers attend to, in training."""
        counts = tokens.weights[:, tokens.num_prefix :]
        scores = self.stages[stage](tokens.after_prefix, counts)
        return tokens.mask(sample_kept(scores, counts, tokens.num_prefix))

    def drop(self, tokens: Tokens, stage: int) -> Tokens:
        """Keep the tokens with the highest scores, in evaluation."""
        counts = initial_tokens(tokens)
        score = self.stages[stage](tokens.after_prefix, counts)[..., 0]
        # without an initial token the average is undefined: keep the first
        score = score * counts.any(dim=1, keepdim=True)
        order = stable_order(score, descending=True)
        num_kept = self.count_kept(tokens, stage)
        return tokens.keep(order[:, :num_kept])

    def count_kept(self, tokens: Tokens, stage: int) -> int:
        """Count the kept tokens, without the prefix, in evaluation."""
        available = tokens.after_prefix.size(1)
        if self.num_tokens is None and tokens.with_cache:
            return max(1, int((available - 1) * self.keep_rates[stage]))
        return min(self.count_left(tokens, stage), available)

    def softmax(self, tokens: Tokens):
        if not self.training:
            return None
        return partial(masked_softmax, decision=tokens.weights)

    def loss(self, tokens: Tokens) -> dict[str, Tensor]:
        """Compute ``loss_ratio``: `DynamicViT`, section 3.4, equation 16."""
        masks = [r for r in tokens.trace if isinstance(r, Masked)]
        if not masks:
            return {}
        errors = [
            record.decision[:, tokens.num_prefix :].mean(dim=1)
            - self.get_share(stage)
            for stage, record in enumerate(masks)
        ]
        ratio = torch.stack(errors).square().mean()
        return dict(loss_ratio=self.loss_weight * ratio)
