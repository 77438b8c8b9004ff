# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
)
from torch import Tensor, nn

from mmclca.registry import WEIGHT_INITIALIZERS

from .class_attention import ClassLayer

# config of the initialization of linear layers
TRUNC_NORMAL = dict(type='TruncNormal', layer='Linear', std=0.02)


def trunc_normal(*shape: int) -> Tensor:
    """Sample the initial values of tokens, positions or class weights."""
    return nn.init.trunc_normal_(torch.zeros(shape), std=0.02)


def scale_of_depth(num_layers: int) -> float:
    """Return the initial LayerScale of a network of so many layers.

    Source: Touvron's thesis (2022), chapters 3 and 4, for CaiT and ResMLP.
    """
    if num_layers <= 18:
        return 0.1
    return 1e-5 if num_layers <= 24 else 1e-6


TOKENS = ('cls_token', 'dist_token')


@WEIGHT_INITIALIZERS.register_module()
class DeiTInit:
    """Initial weights of DeiT, Three things and DeiT III.

    ``init_cfg=dict(type='mmclca.DeiTInit')`` of a ViT: truncated normal,
    standard deviation 0.02, for the linear layers of attention and FFN, with
    biases of zero, and for the CLS and distillation tokens; the same for the
    talking heads and class layers of a :class:`CaiT`. Positions are drawn so
    by mmpretrain; convolutions, norms and LayerScale stay as built, and so do
    reducers and caches.

    mmpretrain alone leaves CLS at zero, attention as PyTorch draws it, and
    draws the FFN by Xavier after any ``init_cfg`` of the model.

    Source: Touvron's thesis (2022), chapter 3; the deviation is that of
    DeiT's public code.

    Args:
        std (float): Standard deviation. Defaults to 0.02.
    """

    def __init__(self, std: float = 0.02):
        self.std = std

    def __call__(self, module: nn.Module) -> None:
        """Draw the weights of a backbone or a classifier, in place."""
        for part in module.modules():
            if isinstance(part, TransformerEncoderLayer | ClassLayer):
                part.apply(self._init_linear)
                part.is_init = True  # else it draws its FFN after this
        for name, parameter in module.named_parameters():
            if name.rpartition('.')[-1] in TOKENS:
                nn.init.trunc_normal_(parameter, std=self.std)

    def _init_linear(self, part: nn.Module) -> None:
        if isinstance(part, nn.Linear):
            nn.init.trunc_normal_(part.weight, std=self.std)
            if part.bias is not None:  # qkv_bias=False
                nn.init.zeros_(part.bias)
