# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""timm's vision transformers with token reduction."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from timm.layers import AttentionPoolLatent, DiffAttention
from timm.models import vision_transformer as vit
from timm.models.deit import VisionTransformerDistilled
from torch import Tensor, nn

from ..reduction.attention import Attended, DiffAttended, JoinedAttended
from ..reduction.tokens import Tokens
from .base import Kind, ReducedModel
from .calls import call, call_attention, same_shape

DIFFERENTIAL = DiffAttention, vit.DiffParallelScalingBlock


def split_heads(attn: nn.Module, qkv: Sequence[Tensor], key_bias) -> Attended:
    """Split queries, keys and values (B, N, C) by heads, and normalize."""
    heads = attn.num_heads * (1 + isinstance(attn, DIFFERENTIAL))
    shape = qkv[0].shape[:2]
    q, k, v = (
        y.reshape(*shape, number, -1).transpose(1, 2)
        for y, number in zip(qkv, (heads, heads, attn.num_heads), strict=True)
    )
    q, k = attn.q_norm(q), attn.k_norm(k)
    if heads == attn.num_heads:
        return Attended(q, k, v, key_bias)
    return DiffAttended(q, k, v, key_bias, attn._compute_lambda().type_as(q))


def weighted(attn: nn.Module, attended: Attended, softmax) -> Tensor:
    """Return the weighted values of all heads, (B, N, C).

    As in timm, ``attn_drop`` gets the attention maps (B, H, N, N) only if the
    attention is not fused; here, also if it has hooks.
    """
    drop = attn.attn_drop
    if not attn.fused_attn or drop._forward_hooks or drop._forward_pre_hooks:
        softmax = partial(_weigh_and_drop, drop, softmax)
    x = attended.values(softmax, drop.p if attn.training else 0.0)
    if isinstance(attn, DIFFERENTIAL):
        x = attn.sub_norm(x) * (1 - attn.lambda_init)
    return x.transpose(1, 2).flatten(2)


def _weigh_and_drop(
    drop: nn.Module, softmax: Callable | None, logits: Tensor
) -> Tensor:
    weights = softmax(logits) if softmax else logits.softmax(dim=-1)
    return drop(weights)


def _project(attn: nn.Module, x: Tensor, key_bias: Tensor | None) -> Attended:
    """Return queries, keys and values of an attention or its wrapper."""
    attn = next(part for part in attn.modules() if hasattr(part, 'qkv'))
    return split_heads(attn, attn.qkv(x).chunk(3, dim=2), key_bias)


def _call(attn: nn.Module, x: Tensor, key_bias: Tensor | None, softmax):
    """Call timm's ``Attention`` or ``DiffAttention``."""
    return call_attention(attn, x, _attend, key_bias, softmax, 'attn_mask')


def _attend(
    attn: nn.Module, x: Tensor, key_bias: Tensor | None, softmax
) -> tuple[Tensor, Attended]:
    """Run timm's ``Attention`` or ``DiffAttention``."""
    attended = _project(attn, x, key_bias)
    y = attn.norm(weighted(attn, attended, softmax))
    gate = attn._modules.get('gate')  # missing in timm 1.0.24
    if gate is not None:
        y = y * gate(x).sigmoid()
    return attn.proj_drop(attn.proj(y)), attended


def project_branches(layer: nn.Module, x: Tensor, key_bias) -> Attended:
    """Return queries, keys and values of a ``ParallelThingsBlock``."""
    parts = layer.attns
    return JoinedAttended(
        [_project(one.attn, one.norm(x), key_bias) for one in parts]
    )


def attend_branches(layer: nn.Module, x: Tensor, *how):
    """Run the attentions of a ``ParallelThingsBlock`` with their norms."""

    def attend(branch, x):
        y, attended = _call(branch.attn, branch.norm(x), *how)
        return branch.drop_path(branch.ls(y)), attended

    branches = [call(branch, x, attend) for branch in layer.attns]
    updates, parts = zip(*branches, strict=True)
    return sum(updates), JoinedAttended(parts)


def project_fused(layer: nn.Module, x: Tensor, key_bias) -> Attended:
    """Return queries, keys and values of a ``ParallelScalingBlock``."""
    _, *qkv = layer.in_proj(x).split(layer.in_split, dim=-1)
    return split_heads(layer, qkv, key_bias)


def attend_and_feed(layer: nn.Module, x: Tensor, key_bias, softmax):
    """Run a ``ParallelScalingBlock``, also with differential attention.

    As attention and FFN are parallel, tokens are reduced after both.
    """
    hidden, *qkv = layer.in_proj(x).split(layer.in_split, dim=-1)
    if layer.mlp_bias is not None:
        hidden = hidden + layer.mlp_bias
    attended = split_heads(layer, qkv, key_bias)
    y = weighted(layer, attended, softmax)
    hidden = layer.mlp_drop(layer.mlp_act(hidden))
    if layer.out_proj is not None:
        return layer.out_proj(torch.cat((y, hidden), dim=-1)), attended
    return layer.attn_out_proj(y) + layer.mlp_out_proj(hidden), attended


def same(layer: nn.Module, x: Tensor) -> Tensor:
    """Return the second argument."""
    return x


SCALING = Kind(
    lambda x, y: x.in_norm(y),
    project_fused,
    attend_and_feed,
    lambda x, y: x.drop_path(x.ls(y)),
    same,
)
KINDS = {
    vit.Block: Kind(
        lambda x, y: x.norm1(y),
        lambda x, *inputs: _project(x.attn, *inputs),
        lambda x, *inputs: _call(x.attn, *inputs),
        lambda x, y: x.drop_path1(x.ls1(y)),
        lambda x, y: y + x.drop_path2(x.ls2(x.mlp(x.norm2(y)))),
    ),
    vit.ResPostBlock: Kind(
        same,
        lambda x, *inputs: _project(x.attn, *inputs),
        lambda x, *inputs: _call(x.attn, *inputs),
        lambda x, y: x.drop_path1(x.norm1(y)),
        lambda x, y: y + x.drop_path2(x.norm2(x.mlp(y))),
    ),
    vit.ParallelThingsBlock: Kind(
        same,
        project_branches,
        attend_branches,
        same,
        lambda x, y: y + sum(ffn(y) for ffn in x.ffns),
    ),
    vit.ParallelScalingBlock: SCALING,
    vit.DiffParallelScalingBlock: SCALING,
}
POOLS = {AttentionPoolLatent}  # supported attention pooling


class ReducedViT(ReducedModel, vit.VisionTransformer):
    """timm's ``VisionTransformer`` with token reduction.

    Made by :func:`reduce_tokens`. Class token, distillation token and
    registers are the prefix, which no reducer drops. The intermediate outputs
    of timm (``forward_intermediates``) are not reduced.
    """

    layers = property(lambda self: self.blocks)
    embed_dims = property(lambda self: self.embed_dim)
    num_prefix = property(lambda self: self.num_prefix_tokens)
    img_size = property(lambda self: self.patch_embed.img_size)
    patch_resolution = property(lambda self: self.patch_embed.grid_size)
    has_cls = ranks_by_cls = property(lambda self: self.has_class_token)
    pool_from = property(lambda x: x.num_prefix * (not x.pool_include_prefix))
    has_pos = property(
        lambda x: x.pos_embed is not None and not x.no_embed_class
    )

    @staticmethod
    def kind_of(layer: nn.Module) -> Kind:
        """Return the functions that run a layer, or one derived from it."""
        return next(KINDS[x] for x in layer.original.__mro__ if x in KINDS)

    def delegates(self) -> list[nn.Module]:
        """See :class:`ReducedModel`."""
        parts = [self.blocks, *self.blocks]
        parts += [x for x in self.blocks.modules() if hasattr(x, 'qkv')]
        for block in self.blocks:
            if isinstance(block, vit.ParallelThingsBlock):
                parts += block.attns
        return parts

    def run_layers(self, tokens: Tokens, observe: Callable) -> Tokens:
        """Call ``blocks`` as a module, so that its hooks run."""
        run = super().run_layers

        def function(blocks, x):
            x = same_shape(tokens.x, x, blocks)
            left = run(tokens.with_x(x), observe)
            return left.x, left

        x, left = call(self.blocks, tokens.x, function)
        return left.with_x(same_shape(left.x, x, self.blocks))

    def embed(self, x: Tensor) -> tuple[Tokens, tuple[int, int]]:
        """See :class:`Reducible`."""
        x = self.patch_embed(x)
        hw = x.shape[1:3] if x.dim() == 4 else self.patch_resolution
        x = self.patch_drop(self._pos_embed(x))
        num_patches = x.size(1) - self.num_prefix
        tokens = Tokens(x, num_prefix=self.num_prefix, num_patches=num_patches)
        if self.cache is not None:
            tokens = self.cache.start(tokens)
        return tokens.with_x(self.norm_pre(tokens.x)), tuple(hw)

    def _features(self, x: Tensor) -> tuple:
        if self.reduces or self.has_cla or self.recorder is not None:
            return super()._features(x)
        # without a reduction, timm's loop is faster
        return vit.VisionTransformer.forward_features(self, x), None

    def apply_final_norm(self, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return self.norm(x)

    def remove_head(self) -> None:
        """Remove the modules after the layers; a CLA head replaces them."""
        for name in ('norm', 'fc_norm', 'head_dist'):
            setattr(self, name, nn.Identity())
        self.attn_pool = None

    def pool(self, x: Tensor | Tokens, pool_type: str | None = None) -> Tensor:
        """Pool tokens (B, N, C); sizes and padding bias attention pooling."""
        if isinstance(x, Tensor):
            return super().pool(x, pool_type)
        bias = self.reducer.key_bias(x)
        bias = x.weights[:, None, None] * 0 if bias is None else bias
        ignored = x.weight[:, None, None] <= 0
        bias = bias.masked_fill(ignored, -torch.inf)[..., self.pool_from :]
        return self.attn_pool(x.x[:, self.pool_from :], attn_mask=bias)


class ReducedDistilledViT(ReducedViT, VisionTransformerDistilled):
    """timm's ``VisionTransformerDistilled`` with token reduction."""

    is_distilled = True
