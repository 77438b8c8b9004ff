# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from mmpretrain.models.heads import ClsHead
from torch import Tensor, nn

from mmclca.registry import MODELS


@MODELS.register_module()
class LayerFusionHead(ClsHead):
    """Linear classifier over the outputs of several layers.

    Each output is normalized (a LayerNorm without parameters), so that no
    layer outweighs the others, all are concatenated, and one linear layer
    turns them into class scores. It starts at zero, to be fitted to the
    training images in closed form by ``mmclca.apis.Probe`` or, before a
    training, by ``mmclca.ProbeInitHook``.

    Args:
        num_classes (int): Number of classes.
        in_channels (int | Sequence[int]): Channels C of what is normalized
            together; a list, one a layer, where layers differ.
        num_layers (int): Layers G that the head reads, the length of the
            backbone's ``out_indices``.
        num_parts (int): Vectors of C channels side by side in an output,
            each normalized by itself: 2 for ``out_type='cls_average'`` of
            the backbone. Defaults to 1.
        loss (dict): Config of the loss. Defaults to
            ``dict(type='CrossEntropyLoss', loss_weight=1.0)``.
        topk (int | Sequence[int]): Top-k accuracies. Defaults to (1, ).
        cal_acc (bool): Whether to log the training accuracy.
            Defaults to False.
        init_cfg (dict, optional): Initialization config. Defaults to None.

    Raises:
        ValueError: If a size is not a positive integer, or ``in_channels``
            lists another number of layers.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int | Sequence[int],
        num_layers: int,
        num_parts: int = 1,
        loss: dict = dict(type='CrossEntropyLoss', loss_weight=1.0),
        topk: int | Sequence[int] = (1,),
        cal_acc: bool = False,
        init_cfg: dict | None = None,
    ):
        topk = (topk,) if isinstance(topk, int) else topk
        super().__init__(loss, topk, cal_acc, init_cfg)
        one_each = isinstance(in_channels, Sequence)
        channels = list(in_channels) if one_each else [in_channels]
        sizes = [num_classes, num_layers, num_parts, *channels]
        if any(type(size) is not int or size < 1 for size in sizes):
            raise ValueError(
                f'num_classes={num_classes!r}, in_channels={in_channels!r}, '
                f'num_layers={num_layers!r} and num_parts={num_parts!r} must '
                'be positive integers'
            )
        if one_each and len(channels) != num_layers:
            raise ValueError(
                f'in_channels={in_channels!r} lists {len(channels)} layers, '
                f'num_layers={num_layers}: make them agree'
            )
        self.num_classes = num_classes
        self.in_channels = in_channels
        self.num_layers = num_layers
        self.num_parts = num_parts
        channels = channels if one_each else channels * num_layers
        self.fc = nn.Linear(num_parts * sum(channels), num_classes)
        nn.init.zeros_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Outputs of G layers to one normalized feature an image.

        Args:
            feats (tuple[Tensor]): Of each layer vectors (B, num_parts * C),
                or a map (B, C, H, W), of which the average is taken.

        Returns:
            Tensor: (B, D), D the sum of all channels.
        """
        return torch.cat([self._normalized(feat) for feat in feats], dim=-1)

    def _normalized(self, feat: Tensor) -> Tensor:
        if feat.dim() == 4:
            feat = feat.mean(dim=(2, 3))
        parts = feat.unflatten(-1, (self.num_parts, -1))
        return F.layer_norm(parts, parts.shape[-1:]).flatten(1)

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Outputs of G layers to class scores (B, num_classes)."""
        return self.fc(self.pre_logits(feats))
