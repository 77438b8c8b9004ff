# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Heads that read several layers."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import integer

from .base import Head


@MODELS.register_module()
class CLAHead(Head):
    """Cross-layer aggregation (CLA) head.

    BatchNorm, a depth-wise convolution over the layers, BatchNorm, GELU and a
    point-wise convolution turn the CLS tokens of G layers into class scores.
    `Cross-Layer Cache Aggregation for Token Reduction in Ultra-Fine-Grained
    Image Recognition`, section III-B, equations 1 and 2. The CLS tokens come
    without the final LayerNorm: the backbone has ``final_norm=False``, which
    :class:`TokenReductionClassifier` checks.

    The BatchNorm statistics cover the batch of one process. On several GPUs
    ``sync_bn='torch'`` in the config makes them cover all of it.

    Args:
        num_classes (int): Number of classes.
        in_channels (int): Channels C of a CLS token.
        num_layers (int): Layers G that the head reads, the length of the
            backbone's ``out_indices``.
        multiplier (int): Channels that the depth-wise convolution makes of
            each one (the paper's DWG). Defaults to 2.
        **head: ``loss``, ``topk``, ``cal_acc`` and ``init_cfg`` of
            mmpretrain's ``ClsHead``. Without ``init_cfg``, PyTorch's own
            start.

    Raises:
        ValueError: If a size is not a positive integer.
    """

    last_layer = 'layers.4'
    accepts_dist_token = True

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        num_layers: int,
        multiplier: int = 2,
        **head,
    ):
        super().__init__(num_classes, in_channels, **head)
        integer(num_layers=num_layers, multiplier=multiplier)
        self.num_layers = num_layers
        made = multiplier * in_channels
        # the kernel covers all layers; one layer too many is an error after
        # it, where a stride would pass over it
        depth_wise = nn.Conv1d(
            in_channels, made, num_layers, groups=in_channels
        )
        self.layers = nn.Sequential(
            nn.BatchNorm1d(in_channels),
            depth_wise,
            nn.BatchNorm1d(made),
            nn.GELU(),
            nn.Conv1d(made, num_classes, 1),
        )

    def check(self, backbone: nn.Module, with_neck: bool) -> None:
        """See :class:`Head`."""
        self.check_layers(backbone)
        super().check(backbone, with_neck)
        backbone.check_cla()

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """G CLS tokens (B, C) to aggregated features (B, multiplier * C).

        Of tokens (B, 2, C) the first is CLS, the other is not read.
        """
        first = [feat.unsqueeze(1).flatten(1, -2)[:, 0] for feat in feats]
        return self.layers[:-1](torch.stack(first, dim=-1)).flatten(1)

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """G CLS tokens (B, C) to class scores (B, num_classes)."""
        return self.layers[-1](self.pre_logits(feats).unsqueeze(-1)).flatten(1)


@MODELS.register_module()
class LayerFusionHead(Head):
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
            each normalized by itself: 3 for ``out_type='cls_average_std'``
            of the backbone. Defaults to 1.
        **head: ``loss``, ``topk``, ``cal_acc`` and ``init_cfg`` of
            mmpretrain's ``ClsHead``.

    Raises:
        ValueError: If a size is not a positive integer, or ``in_channels``
            lists another number of layers.
    """

    last_layer = 'fc'

    def __init__(
        self,
        num_classes: int,
        in_channels: int | Sequence[int],
        num_layers: int,
        num_parts: int = 1,
        **head,
    ):
        integer(num_layers=num_layers, num_parts=num_parts)
        listed = isinstance(in_channels, Sequence)
        channels = list(in_channels) if listed else [in_channels] * num_layers
        if len(channels) != num_layers:
            raise ValueError(
                f'in_channels={in_channels!r} has {len(channels)} layers, but '
                f'num_layers={num_layers}; use equal numbers'
            )
        for width in channels:
            integer(in_channels=width)
        super().__init__(num_classes, sum(channels), **head)
        self.in_channels = in_channels
        self.num_layers = num_layers
        self.num_parts = num_parts
        self.fc = nn.Linear(num_parts * sum(channels), num_classes)
        nn.init.zeros_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def check(self, backbone: nn.Module, with_neck: bool) -> None:
        """See :class:`Head`."""
        self.check_layers(backbone)
        super().check(backbone, with_neck)

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
