# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Minimal backbones: a reducible one, and one without tokens."""

import torch
from mmengine.model import ModuleList
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.utils import MultiheadAttention
from torch import nn

from mmclca.models import Reducible
from mmclca.models.reduction.attention import attend
from mmclca.models.reduction.tokens import Tokens
from mmclca.registry import MODELS


@MODELS.register_module()
class ToyReducible(Reducible, BaseBackbone):
    """Two prefix tokens, attention without FFN."""

    num_prefix = 2
    default_out_indices = (2,)

    def __init__(
        self, channels=24, img_size=32, out_indices=(2,), **reduction
    ):
        super().__init__()
        self.embed_dims, self.out_indices = channels, out_indices
        self.img_size = (img_size, img_size)
        self.patch_resolution = (img_size // 8, img_size // 8)
        self.patches = nn.Conv2d(3, channels, 8, stride=8)
        self.prefix = nn.Parameter(torch.randn(1, 2, channels))
        self.norm = nn.LayerNorm(channels)
        self.layers = ModuleList(
            MultiheadAttention(channels, num_heads=2) for _ in range(3)
        )
        self.set_reduction(**reduction)

    def embed(self, x):
        x = self.patches(x)
        hw = tuple(x.shape[-2:])
        prefix = self.prefix.expand(x.size(0), -1, -1)
        x = torch.cat((prefix, x.flatten(2).transpose(1, 2)), dim=1)
        tokens = Tokens(x, num_prefix=2, num_patches=hw[0] * hw[1])
        return (self.cache.start(tokens) if self.cache else tokens), hw

    def normalize(self, layer, x):
        return self.norm(x)

    def attention_block(self, layer, tokens, key_bias, softmax):
        x = self.normalize(layer, tokens.features)
        update, attended = attend(layer, x, key_bias, softmax)
        return tokens.features + update, attended

    def ffn_block(self, layer, x):
        return x


@MODELS.register_module()
class ToyPlain(BaseBackbone):
    """A convolution and the average over its output."""

    def __init__(self, channels=24):
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 8, stride=8)

    def forward(self, x):
        return (self.conv(x).relu().mean(dim=(2, 3)),)
