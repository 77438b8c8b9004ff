# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The supported vision transformers of Transformers, one entry per family."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..reduction.attention import Attended
from ..reduction.reducers import TokenReducer
from ..reduction.rotary import Rotary
from .base import LayerFunctions
from .calls import AttentionInputs, call_attention
from .rotary_angles import transformers_angles

ARGUMENTS = dict(attention_mask='key_bias')  # of the attention
ROTARY_ARGUMENTS = ARGUMENTS | dict(position_embeddings='rotary')


def no_rotary(base: Any, images: Tensor, reducer: TokenReducer) -> None:
    """Return None, as patches have no rotary positions."""


def dinov3_rotary(base: Any, images: Tensor, reducer: TokenReducer) -> Rotary:
    """Return the rotary positions of a DINOv3."""
    num_prefix = 1 + base.config.num_register_tokens
    settings = reducer.rotary
    if settings.merged_position == 'mean':
        angles = transformers_angles(base.rope_embeddings, images)
        return Rotary.with_coordinates(
            angles.places,
            angles.frequencies,
            num_prefix,
            half=True,
            keys=settings.keys,
        )
    cosine, sine = base.rope_embeddings(images)
    rows = torch.cat((sine, cosine), dim=-1)[None, None]
    return Rotary.with_rows(rows, num_prefix, half=True, keys=settings.keys)


@dataclass(frozen=True)
class TransformersFamily:
    """Where a model without classifier has its parts.

    Args:
        functions (LayerFunctions): Functions that run a layer.
        layers (str): Name of the list of layers.
        attention (str): Name of the attention in a layer.
        pool (Callable): Maps the model and its tokens (B, N, C) to the pooled
            output (B, C), or None.
        norms (tuple[str]): Name of the norm of the last layer, if any.
        before (str): Name of the norm of the first layer; empty: none.
        cls (str): Name of the class token in the embedding.
        num_prefix (Callable): Maps the model to the number of tokens before
            the patches.
        rotary (Callable): Maps the model, images (B, 3, H, W) and the reducer
            to the rotary positions, if any.
    """

    functions: LayerFunctions
    layers: str
    attention: str
    pool: Callable[[Any, Tensor], Tensor | None]
    norms: tuple[str, ...] = ('layernorm',)
    before: str = ''
    cls: str = 'cls_token'
    num_prefix: Callable[[Any], int] = lambda base: 1
    rotary: Callable[[Any, Tensor, TokenReducer], Rotary | None] = no_rotary

    def pre_norm(self, base: nn.Module, x: Tensor) -> Tensor:
        """Normalize the input (B, N, C) of the first layer."""
        return getattr(base, self.before)(x) if self.before else x

    def norm(self, base: nn.Module, x: Tensor) -> Tensor:
        """Normalize the output (B, N, C) of the last layer."""
        for name in self.norms:
            x = getattr(base, name)(x)
        return x


def _project(attn: nn.Module, x: Tensor, inputs: AttentionInputs) -> Attended:
    """Return queries, keys and values of an attention."""
    q, k, v = (
        project(x).unflatten(2, (-1, attn.head_dim)).transpose(1, 2)
        for project in (attn.q_proj, attn.k_proj, attn.v_proj)
    )
    return inputs.attended(q, k, v)


def _attention(
    name: str, out: str, dropout: str, names: dict[str, str] = ARGUMENTS
) -> tuple[Callable, Callable]:
    """Return the functions of :class:`LayerFunctions` that project and attend.

    Args:
        name (str): Name of the attention in a layer.
        out (str): Name of the last projection in the attention.
        dropout (str): Name of its share of dropout.
        names (dict[str, str]): See :func:`call_attention`.
    """

    def attend(attn, x, inputs):
        attended = _project(attn, x, inputs)
        drop = getattr(attn, dropout) if attn.training else 0.0
        y = attended.values(inputs.softmax, drop).transpose(1, 2).flatten(2)
        # like the original, without weights
        return (getattr(attn, out)(y), None), attended

    def call(layer, x, inputs):
        attn = getattr(layer, name)
        (y, _), attended = call_attention(attn, x, attend, inputs, names)
        return y, attended

    def project(layer, x, inputs):
        return _project(getattr(layer, name), x, inputs)

    return project, call


_vit_project, _vit_attend = _attention(
    'attention', out='o_proj', dropout='attention_dropout'
)
_clip_project, _clip_attend = _attention(
    'self_attn', out='out_proj', dropout='dropout'
)
VIT: dict[str, Any] = dict(
    functions=LayerFunctions(
        lambda x, y: x.layernorm_before(y),
        _vit_project,
        _vit_attend,
        lambda x, y: x.dropout(y),
        lambda x, y: y + x.dropout(x.mlp(x.layernorm_after(y))),
    ),
    layers='layers',
    attention='attention',
    pool=lambda base, x: base.pooler and base.pooler(x),
)
DINOV2: dict[str, Any] = dict(
    functions=LayerFunctions(
        lambda x, y: x.norm1(y),
        _vit_project,
        _vit_attend,
        lambda x, y: x.drop_path(x.layer_scale1(y)),
        lambda x, y: y + x.drop_path(x.layer_scale2(x.mlp(x.norm2(y)))),
    ),
    layers='encoder.layer',
    attention='attention',
    pool=lambda base, x: x[:, 0],
)
DINOV3: dict[str, Any] = dict(
    functions=LayerFunctions(
        lambda x, y: x.norm1(y),
        *_attention('attention', 'o_proj', 'dropout', ROTARY_ARGUMENTS),
        lambda x, y: x.drop_path(x.layer_scale1(y)),
        lambda x, y: y + x.drop_path(x.layer_scale2(x.mlp(x.norm2(y)))),
    ),
    layers='model.layer',
    attention='attention',
    pool=lambda base, x: x[:, 0],
    norms=('norm',),
    num_prefix=lambda base: 1 + base.config.num_register_tokens,
    rotary=dinov3_rotary,
)
CLIP: dict[str, Any] = dict(
    functions=LayerFunctions(
        lambda x, y: x.layer_norm1(y),
        _clip_project,
        _clip_attend,
        lambda x, y: y,
        lambda x, y: y + x.mlp(x.layer_norm2(y)),
    ),
    layers='encoder.layers',
    attention='self_attn',
)
FAMILIES = dict(
    ViTModel=TransformersFamily(**VIT),
    DeiTModel=TransformersFamily(**VIT, num_prefix=lambda base: 2),
    Dinov2Model=TransformersFamily(**DINOV2),
    Dinov2WithRegistersModel=TransformersFamily(
        **DINOV2, num_prefix=lambda base: 1 + base.config.num_register_tokens
    ),
    DINOv3ViTModel=TransformersFamily(**DINOV3),
    CLIPVisionModel=TransformersFamily(
        **CLIP,
        pool=lambda base, x: base.post_layernorm(x[:, 0]),
        norms=(),
        before='pre_layrnorm',
        cls='class_embedding',
    ),
    SiglipVisionModel=TransformersFamily(
        **CLIP,
        pool=lambda base, x: base.head(x) if base.use_head else None,
        norms=('post_layernorm',),
        num_prefix=lambda base: 0,
    ),
)
# models with a classifier, each around one of the above
CLASSIFIERS = (
    'ViTForImageClassification',
    'DeiTForImageClassification',
    'DeiTForImageClassificationWithTeacher',
    'Dinov2ForImageClassification',
    'Dinov2WithRegistersForImageClassification',
    'CLIPForImageClassification',
    'CLIPVisionModelWithProjection',
    'SiglipForImageClassification',
)
TRANSFORMERS = [*FAMILIES, *CLASSIFIERS]


def find_family(module: nn.Module) -> TransformersFamily | None:
    """Return the family of a model without classifier, if supported."""
    return FAMILIES.get(type(module).__name__)


def weighted_pool(head: Any, x: Tensor, bias: Tensor) -> tuple[Tensor, None]:
    """Run the attention pooling of SigLIP with a bias of the keys.

    Args:
        head (nn.Module): The pooling, called as a module.
        x (Tensor): Tokens (B, N, C).
        bias (Tensor): Added to the logits, (B, 1, 1, N).
    """
    probe = head.probe.expand(x.size(0), -1, -1)
    mask = bias.expand(-1, head.attention.num_heads, -1, -1).flatten(0, 1)
    options = dict(attn_mask=mask.to(x.dtype), need_weights=False)
    x = head.attention(probe, x, x, **options)[0]
    return (x + head.mlp(head.layernorm(x)))[:, 0], None
