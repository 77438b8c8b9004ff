# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Heads that read several layers."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer

from ..config_class import get_class
from .base import Head, has_class_loss


@MODELS.register_module()
class CLAHead(Head):
    """Cross-layer aggregation (CLA) head.

    BatchNorm, a depth-wise convolution over the layers, BatchNorm, GELU and a
    point-wise convolution map the CLS tokens of G layers to class scores.
    `Cross-Layer Cache Aggregation for Token Reduction in Ultra-Fine-Grained
    Image Recognition`, section III-B, equations 1 and 2. The CLS tokens are
    not normalized: :class:`TokenReductionClassifier` requires
    ``final_norm=False`` of the backbone.

    The BatchNorm statistics cover the batch of one process. On several GPUs,
    set ``sync_bn='torch'`` in the config to cover the whole batch.

    Args:
        num_classes (int): Number of classes.
        in_channels (int): Channels C of a CLS token.
        num_layers (int): Input layers G, the length of the backbone's
            ``out_indices``.
        multiplier (int): Output channels of the depth-wise convolution per
            input channel (DWG in the paper). Defaults to 2.
        topk (int | Sequence[int]): Numbers k of the top-k accuracies that are
            computed. Defaults to (1,).
        **head: ``loss``, ``cal_acc`` and ``init_cfg`` for mmpretrain's
            ``ClsHead``. Without ``init_cfg``, PyTorch's default
            initialization is used.

    Raises:
        Error: If a size is not a positive integer.
    """

    last_layer = 'layers.4'
    accepts_dist_token = True

    @classmethod
    def replace(
        cls, head: dict | None, backbone: nn.Module, **sizes: int
    ) -> dict:
        """See :class:`Head`; another CLA head keeps all its settings."""
        head_class, settings = get_class(head), head or {}
        if issubclass(head_class, CLAHead):
            return dict(settings, in_channels=backbone.embed_dims, **sizes)
        if not has_class_loss(head_class) or 'num_classes' not in settings:
            raise Error(
                f'a CLA head cannot replace head={head}; use, for example, '
                "dict(type='LinearClsHead', num_classes=80)"
            )
        return super().replace(head, backbone, **sizes)

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        num_layers: int,
        multiplier: int = 2,
        topk: int | Sequence[int] = (1,),
        **head,
    ):
        super().__init__(num_classes, in_channels, topk, **head)
        check_integer(num_layers=num_layers, multiplier=multiplier)
        self.num_layers = num_layers
        made = multiplier * in_channels
        # the kernel covers all layers: an extra layer raises an error, while a
        # stride would skip it
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
        """Aggregate G CLS tokens (B, C) to features (B, multiplier * C).

        From tokens (B, 2, C) it uses CLS and ignores the distillation token.
        """
        first = [feat.unsqueeze(1).flatten(1, -2)[:, 0] for feat in feats]
        tokens = torch.stack(first, dim=-1)
        for layer in list(self.layers)[:-1]:  # a slice would be a new module
            tokens = layer(tokens)
        return tokens.flatten(1)

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Map G CLS tokens (B, C) to class scores (B, num_classes)."""
        return self.layers[-1](self.pre_logits(feats).unsqueeze(-1)).flatten(1)


# number of pooled vectors by out_type of a backbone
POOLED_PARTS = dict(
    cls_token=1, average=1, std=1, cls_average=2, cls_std=2, cls_average_std=3
)


@MODELS.register_module()
class LayerFusionHead(Head):
    """Linear classifier over the outputs of several layers.

    Each output is normalized by a LayerNorm without parameters, so that all
    layers have the same weight. A linear layer maps their concatenation to
    class scores. It starts at zero and is fitted to the training images in
    closed form, by ``mmclca.apis.Probe`` or, before training, by
    ``mmclca.ProbeInitHook``.

    Args:
        num_classes (int): Number of classes.
        in_channels (int | Sequence[int]): Channels C of a normalized vector; a
            list, one entry per layer, if layers differ.
        num_layers (int): Input layers G, the length of the backbone's
            ``out_indices``.
        num_parts (int): Concatenated vectors of C channels per output, each
            normalized separately: 3 for ``out_type='cls_average_std'`` of the
            backbone. Defaults to 1.
        topk (int | Sequence[int]): Numbers k of the top-k accuracies that are
            computed. Defaults to (1,).
        **head: ``loss``, ``cal_acc`` and ``init_cfg`` for mmpretrain's
            ``ClsHead``.

    Raises:
        Error: If a size is not a positive integer, or the length of
            ``in_channels`` differs from ``num_layers``.
    """

    last_layer = 'fc'

    def __init__(
        self,
        num_classes: int,
        in_channels: int | Sequence[int],
        num_layers: int,
        num_parts: int = 1,
        topk: int | Sequence[int] = (1,),
        **head,
    ):
        check_integer(num_layers=num_layers, num_parts=num_parts)
        if isinstance(in_channels, Sequence):
            channels = list(in_channels)
        else:
            channels = [in_channels] * num_layers
        if len(channels) != num_layers:
            raise Error(
                f'in_channels={in_channels!r} has {len(channels)} layers, but '
                f'num_layers={num_layers}; use equal numbers'
            )
        for width in channels:
            check_integer(in_channels=width)
        super().__init__(num_classes, sum(channels), topk, **head)
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
        """Normalize and concatenate the outputs of G layers.

        Args:
            feats (tuple[Tensor]): Per layer, vectors (B, num_parts * C), or a
                feature map (B, C, H, W), which is averaged; with two parts,
                its standard deviation per channel is the second.

        Returns:
            Tensor: (B, D), where D is the sum of all channels.
        """
        normalized = []
        for feat in feats:
            if feat.dim() == 4:
                feat = _pooled(feat, self.num_parts)
            parts = feat.unflatten(-1, (self.num_parts, -1))
            parts = F.layer_norm(parts, parts.shape[-1:])
            normalized.append(parts.flatten(1))
        return torch.cat(normalized, dim=-1)

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Map the outputs of G layers to class scores (B, num_classes)."""
        return self.fc(self.pre_logits(feats))


def _pooled(feat: Tensor, num_parts: int) -> Tensor:
    """Return mean, and standard deviation for a second part, of a map."""
    mean = feat.mean(dim=(2, 3), keepdim=True)
    if num_parts == 1:
        return mean.flatten(1)
    variance = (feat - mean).square().mean(dim=(2, 3))
    # the square root has no gradient at 0, the variance of a constant map
    std = variance.clamp(min=1e-7).sqrt()
    return torch.cat((mean.flatten(1), std), dim=1)


def get_feature_subsets(head: nn.Module) -> list[Tensor] | None:
    """Return the columns of ``pre_logits`` in each feature subset of a probe.

    With CLS, average and standard deviation of each layer, these are: all
    but the averages and deviations of the last quarter of the layers; and the
    CLS tokens of the last third. Late CLS tokens attend to the object,
    averages and deviations include the background. Other heads have one
    subset, None.
    """
    if not isinstance(head, LayerFusionHead) or head.num_parts != 3:
        return None
    depth = head.num_layers
    columns = torch.arange(3 * depth * head.in_channels)
    columns = columns.view(depth, 3, head.in_channels)
    pooled = math.ceil(3 * depth / 4)
    early = [columns[:pooled].flatten(), columns[pooled:, 0].flatten()]
    return [torch.cat(early), columns[-math.ceil(depth / 3) :, 0].flatten()]
