# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def at_least_float32(x: Tensor) -> Tensor:
    """Cast half precision to float32, which sums and exponents need."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


@dataclass
class Attended:
    """Queries, keys and values of an attention layer.

    Args:
        q (Tensor): Queries (B, H, N, D).
        k (Tensor): Keys (B, H, N, D).
        v (Tensor): Values (B, H, N, D).
        key_bias (Tensor, optional): Added to the logits, (B, 1, 1, N), or one
            row per query, (B, H, N, N).
    """

    q: Tensor
    k: Tensor
    v: Tensor
    key_bias: Tensor | None = None

    def weights(self, q: Tensor, softmax: Callable | None = None) -> Tensor:
        """Compute the attention weights of some queries, (B, H, n, N).

        Args:
            q (Tensor): Queries (B, H, n, D): the first n, unless all have the
                same bias.
            softmax (Callable, optional): See :func:`attend`.
        """
        bias = self.key_bias
        if bias is not None:  # row n belongs to query n
            bias = bias[..., : q.size(2), :]
        logits = attention_logits(q, self.k, bias)
        return logits.softmax(-1) if softmax is None else softmax(logits)

    def values(
        self, softmax: Callable | None = None, dropout: float = 0.0
    ) -> Tensor:
        """Compute the weighted values of all queries, (B, H, N, D).

        Args:
            softmax (Callable, optional): See :func:`attend`.
            dropout (float): Dropout of the weights; 0 with ``softmax``.
        """
        # torch.onnx.export mistakes the order of fused outputs in memory
        if softmax is not None or torch.onnx.is_in_onnx_export():
            return self.weights(self.q, softmax) @ self.v
        return F.scaled_dot_product_attention(
            self.q, self.k, self.v, self.key_bias, dropout
        )

    def cls_attn(self) -> Tensor:
        """Compute the attention from CLS to all tokens, (B, H, N).

        Only one row of the N x N map is computed, in O(N). Attention dropout
        is omitted, so that a selection depends only on the image.
        """
        return self.weights(self.q[:, :, :1])[:, :, 0]

    def received(self, chunk_size: int = 128) -> Tensor:
        """Sum the attention that each token receives from all tokens, (B, N).

        These are the column sums of the attention map over heads and queries,
        in O(N) memory, as queries are processed in chunks. ``key_bias`` must
        not differ between queries.
        """
        total = self.k.new_zeros(self.k.size(0), self.k.size(2))
        for q in self.q.split(chunk_size, dim=2):
            total = total + self.weights(q).sum(dim=(1, 2))
        return total


@dataclass
class DiffAttended(Attended):
    """Queries, keys and values of differential attention.

    `Differential Transformer`: head h has the weights of queries and keys 2h
    minus ``share`` times those of 2h + 1. ``q`` and ``k`` are (B, 2 H, N, D),
    ``v`` is (B, H, N, 2 D).
    """

    share: Tensor | None = None

    def _difference(self, both: Tensor) -> Tensor:
        first, second = both.unflatten(1, (-1, 2)).unbind(2)
        return first - self.share * second

    def weights(self, q: Tensor, softmax: Callable | None = None) -> Tensor:
        """See :class:`Attended`; 0 for negative weights, to score tokens."""
        return self._difference(super().weights(q, softmax)).clamp(min=0)

    def values(
        self, softmax: Callable | None = None, dropout: float = 0.0
    ) -> Tensor:
        """See :class:`Attended`; of all weights, including negative ones."""
        v = self.v.repeat_interleave(2, dim=1)
        both = Attended(self.q, self.k, v, self.key_bias)
        return self._difference(both.values(softmax, dropout))


class RotatedAttended(Attended):
    """Queries and keys with rotary position embeddings.

    Attention has the rotated queries and keys; ``k`` are the keys before the
    rotation, as reducers compare contents.

    Args:
        rotated (Attended): With rotated queries and keys.
        k (Tensor): Keys before the rotation, (B, H, N, D).
    """

    def __init__(self, rotated: Attended, k: Tensor):
        super().__init__(rotated.q, k, rotated.v, rotated.key_bias)
        self.rotated = rotated

    def weights(self, q: Tensor, softmax: Callable | None = None) -> Tensor:
        """See :class:`Attended`."""
        return self.rotated.weights(q, softmax)

    def values(
        self, softmax: Callable | None = None, dropout: float = 0.0
    ) -> Tensor:
        """See :class:`Attended`."""
        return self.rotated.values(softmax, dropout)


class JoinedAttended(Attended):
    """Queries, keys and values of parallel attentions as one with all heads.

    They are concatenated on demand, since few layers need them.
    """

    def __init__(self, parts: Sequence[Attended]):
        self.parts = parts
        self.key_bias = parts[0].key_bias

    @property
    def q(self) -> Tensor:
        return torch.cat([part.q for part in self.parts], dim=1)

    @property
    def k(self) -> Tensor:
        return torch.cat([part.k for part in self.parts], dim=1)

    @property
    def v(self) -> Tensor:
        return torch.cat([part.v for part in self.parts], dim=1)

    def weights(self, q: Tensor, softmax: Callable | None = None) -> Tensor:
        """See :class:`Attended`."""
        queries = q.split([part.q.size(1) for part in self.parts], dim=1)
        made = zip(self.parts, queries, strict=True)
        return torch.cat([part.weights(q, softmax) for part, q in made], dim=1)


class ParallelAttention:
    """Base for parallel attentions, which :func:`attend` runs sequentially.

    This is faster than joining them. They are joined only if the logits of all
    heads are needed.
    """

    def each(self, x: Tensor) -> Iterator[tuple[nn.Module, Tensor]]:
        """Yield each attention with its input from tokens (B, N, C)."""
        raise NotImplementedError

    def joined(self) -> nn.Module:
        """Return one attention with all heads and the same output."""
        raise NotImplementedError


class MixedHeads:
    """Base for attention that mixes heads, which fused kernels do not support.

    A subclass defines ``attended(q, k, v, key_bias)``, an :class:`Attended`
    with the weights and values of mixed heads.
    """

    attended: Callable[[Tensor, Tensor, Tensor, Tensor | None], Attended]


def attention_logits(
    q: Tensor, k: Tensor, key_bias: Tensor | None = None
) -> Tensor:
    """Compute scaled dot products plus the bias, (B, H, M, N)."""
    logits = (q * q.size(-1) ** -0.5) @ k.transpose(-2, -1)
    return logits if key_bias is None else logits + key_bias


def project_qkv(attn, x: Tensor, key_bias: Tensor | None = None) -> Attended:
    """Project normalized tokens (B, N, C) to queries, keys and values."""
    if isinstance(attn, ParallelAttention):
        parts = [
            project_qkv(branch, branch_input, key_bias)
            for branch, branch_input in attn.each(x)
        ]
        return JoinedAttended(parts)
    B, N, _ = x.shape
    qkv = attn.qkv(x).reshape(B, N, 3, attn.num_heads, attn.head_dims)
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    attended_class = (
        attn.attended if isinstance(attn, MixedHeads) else Attended
    )
    return attended_class(q, k, v, key_bias)


def attend(
    attn,
    x: Tensor,
    key_bias: Tensor | None = None,
    softmax: Callable | None = None,
) -> tuple[Tensor, Attended]:
    """Run mmpretrain's ``MultiheadAttention`` and return its q, k and v, too.

    Args:
        attn (MultiheadAttention | ParallelAttention | MixedHeads): Attention
            of a layer.
        x (Tensor): Normalized tokens (B, N, C).
        key_bias (Tensor, optional): Added to the logits of each key, (B, 1, 1,
            N), or of each pair, (B, H, N, N); attention stays fused.
        softmax (Callable, optional): Maps logits (B, H, N, N) to weights
            replacing the softmax; attention is not fused then.

    Returns:
        tuple[Tensor, Attended]: The update of the residual stream, (B, N, C),
        and queries, keys and values.
    """
    if isinstance(attn, ParallelAttention):
        if softmax is None:
            outputs = [
                attend(branch, branch_input, key_bias)
                for branch, branch_input in attn.each(x)
            ]
            update = reduce(torch.add, [update for update, _ in outputs])
            return update, JoinedAttended([part for _, part in outputs])
        attn = attn.joined()
    attended = project_qkv(attn, x, key_bias)
    x = attended.values(softmax, attn.attn_drop if attn.training else 0.0)
    x = attn.proj(x.transpose(1, 2).flatten(2))
    x = attn.out_drop(attn.gamma1(attn.proj_drop(x)))
    return x, attended


def masked_softmax(logits: Tensor, decision: Tensor, eps: float = 1e-6):
    """Apply a softmax over the kept tokens and the token itself.

    `DynamicViT`, section 3.3, equations 10 and 11.

    Args:
        logits (Tensor): Attention logits (B, H, N, N).
        decision (Tensor): 1 for a kept token, 0 for a dropped one, (B, N).
        eps (float): Weight spread over all tokens, for their gradients.
            Defaults to 1e-6.
    """
    N = logits.size(-1)
    itself = torch.eye(N, device=logits.device, dtype=logits.dtype)
    allowed = decision[:, None, None]
    allowed = allowed + (1 - allowed) * itself
    weights = at_least_float32(logits)
    weights = (weights - weights.amax(dim=-1, keepdim=True)).exp() * allowed
    total = weights.sum(dim=-1, keepdim=True) + eps
    return ((weights + eps / N) / total).to(logits.dtype)
