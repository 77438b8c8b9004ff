# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Vision transformers of Hugging Face Transformers with token reduction."""

from collections import namedtuple

import torch
from mmpretrain.models.utils import to_2tuple
from torch import Tensor, nn

from ..reduction.attention import Attended
from ..reduction.tokens import Tokens
from .base import Kind, ReducedModel
from .calls import call_attention

# output of a model without classifier, with the names of Transformers
Features = namedtuple('Features', 'last_hidden_state pooler_output')


def _project(attn: nn.Module, x: Tensor, key_bias) -> Attended:
    """Return queries, keys and values of an attention."""
    q, k, v = (
        project(x).unflatten(2, (-1, attn.head_dim)).transpose(1, 2)
        for project in (attn.q_proj, attn.k_proj, attn.v_proj)
    )
    return Attended(q, k, v, key_bias)


def _attend(attn: nn.Module, x: Tensor, key_bias, softmax):
    """Run an attention; like the original, it returns no weights."""
    attended = _project(attn, x, key_bias)
    dropout = attn.attention_dropout if attn.training else 0.0
    y = attended.values(softmax, dropout).transpose(1, 2).flatten(2)
    return (attn.o_proj(y), None), attended


def _call(attn: nn.Module, x: Tensor, key_bias, softmax):
    """Call an attention with its hooks."""
    mask = 'attention_mask'
    (y, _), attended = call_attention(
        attn, x, _attend, key_bias, softmax, mask
    )
    return y, attended


ATTENTION = (
    lambda x, *inputs: _project(x.attention, *inputs),
    lambda x, *inputs: _call(x.attention, *inputs),
)
KINDS = dict(
    vit=Kind(
        lambda x, y: x.layernorm_before(y),
        *ATTENTION,
        lambda x, y: x.dropout(y),
        lambda x, y: y + x.dropout(x.mlp(x.layernorm_after(y))),
    ),
    dinov2=Kind(
        lambda x, y: x.norm1(y),
        *ATTENTION,
        lambda x, y: x.drop_path(x.layer_scale1(y)),
        lambda x, y: y + x.drop_path(x.layer_scale2(x.mlp(x.norm2(y)))),
    ),
)


class TransformersHead(nn.Module):
    """The classifier of a model of Transformers, with methods as in timm."""

    attn_pool = None
    family = property(lambda self: self.config.model_type)  # vit or dinov2
    # the model without classifier
    base = property(lambda self: self._modules.get(self.family, self))

    def forward_head(
        self, x: Tensor, pre_logits: bool = False
    ) -> Tensor | Features:
        """Map normalized tokens (B, N, C) to class scores."""
        pooled = x[:, 0]
        if self.base is self:
            if self.family == 'vit':
                pooled = self.pooler and self.pooler(x)
            return Features(x, pooled)
        if self.family == 'dinov2':
            pooled = torch.cat((pooled, x[:, 1:].mean(dim=1)), dim=1)
        return pooled if pre_logits else self.classifier(pooled)

    def get_classifier(self) -> nn.Module:
        """Return the classifier."""
        return self.classifier

    def reset_classifier(
        self, num_classes: int, global_pool: str | None = None
    ) -> None:
        """Replace the classifier by a new one."""
        width = self.config.hidden_size * (1 + (self.family == 'dinov2'))
        self.classifier = self._match(nn.Linear(width, num_classes))

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Do nothing; the loop over the layers does it."""

    def no_weight_decay(self) -> set[str]:
        """Names of parameters without weight decay."""
        return {
            x for x in self.state_dict() if 'token' in x or 'position' in x
        }

    def group_matcher(self, coarse: bool = False) -> dict:
        """Patterns of the parameters of each layer."""
        base = r'^(?:vit\.|dinov2\.)?'
        layers = base + r'(?:encoder\.layer|layers)\.(\d+)'
        blocks = [(layers, None), (base + 'layernorm', (99999,))]
        return dict(stem=base + 'embeddings', blocks=blocks)


class ReducedTransformer(ReducedModel, TransformersHead):
    """A ViT or DINOv2 of Transformers with token reduction.

    Made by :func:`reduce_tokens`. The forward pass maps images to a tensor,
    the class scores; models without classifier return :class:`Features`.
    """

    num_prefix = 1
    has_pos = True
    embed_dims = property(lambda self: self.config.hidden_size)
    img_size = property(lambda self: to_2tuple(self.config.image_size))
    patch_resolution = property(lambda self: self._grid(self.img_size))
    cls_token = property(lambda self: self.base.embeddings.cls_token)
    layers = property(
        lambda x: x.base._modules.get('layers') or x.base.encoder.layer
    )

    def delegates(self) -> list[nn.Module]:
        """See :class:`ReducedModel`."""
        return [*self.layers, *(layer.attention for layer in self.layers)]

    def kind_of(self, layer: nn.Module) -> Kind:
        """Return the functions that run a layer."""
        return KINDS[self.family]

    def _grid(self, size: tuple[int, int]) -> tuple[int, ...]:
        patch = to_2tuple(self.config.patch_size)
        return tuple(x // y for x, y in zip(size, patch, strict=True))

    def embed(self, x: Tensor) -> tuple[Tokens, tuple[int, ...]]:
        """See :class:`Reducible`."""
        hw = self._grid(x.shape[-2:])
        tokens = Tokens(self.base.embeddings(x), num_patches=hw[0] * hw[1])
        return (self.cache.start(tokens) if self.cache else tokens), hw

    def apply_final_norm(self, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return self.base.layernorm(x)

    def remove_head(self) -> None:
        """Remove the modules after the layers; a CLA head replaces them."""
        self.base.layernorm = self.classifier = nn.Identity()
