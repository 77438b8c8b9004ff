# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import torch
from mmpretrain.models.heads import ClsHead
from torch import Tensor, nn

from mmclca.registry import MODELS


def check_sizes(**sizes: int) -> None:
    """Refuse sizes of a head that are none.

    Raises:
        ValueError: If one is not a positive integer; names it.
    """
    for name, size in sizes.items():
        if type(size) is not int or size < 1:
            raise ValueError(f'{name}={size!r} must be a positive integer')


@MODELS.register_module()
class CLAHead(ClsHead):
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
        loss (dict): Config of the loss. Defaults to
            ``dict(type='CrossEntropyLoss', loss_weight=1.0)``.
        topk (int | Sequence[int]): Top-k accuracies. Defaults to (1, ).
        cal_acc (bool): Whether to log the training accuracy.
            Defaults to False.
        init_cfg (dict, optional): Initialization config. Defaults to None:
            PyTorch's own start.

    Raises:
        ValueError: If a size is not a positive integer.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        num_layers: int,
        multiplier: int = 2,
        loss: dict = dict(type='CrossEntropyLoss', loss_weight=1.0),
        topk: int | Sequence[int] = (1,),
        cal_acc: bool = False,
        init_cfg: dict | None = None,
    ):
        topk = (topk,) if isinstance(topk, int) else topk
        super().__init__(loss, topk, cal_acc, init_cfg)
        check_sizes(
            num_classes=num_classes,
            in_channels=in_channels,
            num_layers=num_layers,
            multiplier=multiplier,
        )
        self.num_classes = num_classes
        self.in_channels = in_channels
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

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """G CLS tokens (B, C) to aggregated features (B, multiplier * C).

        Of tokens (B, 2, C) the first is CLS, the other is not read.
        """
        first = [feat.unsqueeze(1).flatten(1, -2)[:, 0] for feat in feats]
        return self.layers[:-1](torch.stack(first, dim=-1)).flatten(1)

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """G CLS tokens (B, C) to class scores (B, num_classes)."""
        return self.layers[-1](self.pre_logits(feats).unsqueeze(-1)).flatten(1)
