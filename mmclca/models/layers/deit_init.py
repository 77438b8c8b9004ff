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
    """Sample a truncated normal with standard deviation 0.02.

    Initial values for tokens, positions or class weights.
    """
    return nn.init.trunc_normal_(torch.zeros(shape), std=0.02)


def scale_of_depth(num_layers: int) -> float:
    """Return the initial LayerScale for a number of layers.

    Source: Touvron's thesis (2022), chapters 3 and 4, for CaiT and ResMLP.
    """
    if num_layers <= 18:
        return 0.1
    return 1e-5 if num_layers <= 24 else 1e-6


TOKENS = ('cls_token', 'dist_token')


@WEIGHT_INITIALIZERS.register_module()
class DeiTInit:
    """Initialization of DeiT, Three things and DeiT III.

    ``init_cfg=dict(type='mmclca.DeiTInit')`` in a ViT initializes linear
    layers in attention and FFN, CLS and the distillation token with a
    truncated normal, standard deviation 0.02, and biases with zero. In
    :class:`CaiT` this includes talking heads and class layers. mmpretrain
    initializes positions in the same way. Convolutions, norms, LayerScale,
    reducers and caches keep their values.

    Without it, mmpretrain leaves CLS at zero and attention at PyTorch's
    default, and applies Xavier to the FFN after any ``init_cfg`` of the model.

    Source: Touvron's thesis (2022), chapter 3; the standard deviation is from
    DeiT's public code.

    Args:
        std (float): Standard deviation. Defaults to 0.02.
    """

    def __init__(self, std: float = 0.02):
        self.std = std

    def __call__(self, module: nn.Module) -> None:
        """Initialize a backbone or classifier, in place."""
        for part in module.modules():
            if isinstance(part, TransformerEncoderLayer | ClassLayer):
                part.apply(self._init_linear)
                part.is_init = True  # otherwise it overwrites its FFN
        for name, parameter in module.named_parameters():
            if name.rpartition('.')[-1] in TOKENS:
                nn.init.trunc_normal_(parameter, std=self.std)

    def _init_linear(self, part: nn.Module) -> None:
        if isinstance(part, nn.Linear):
            nn.init.trunc_normal_(part.weight, std=self.std)
            if part.bias is not None:  # qkv_bias=False
                nn.init.zeros_(part.bias)
