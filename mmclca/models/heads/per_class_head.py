# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import torch
from mmengine.logging import MMLogger
from mmpretrain.models.heads import ClsHead
from torch import Tensor, nn

from mmclca.registry import MODELS

from .cla_head import check_sizes


@MODELS.register_module()
class PerClassHead(ClsHead):
    """A linear score of each class from a vector of its own.

    For one query a class: ``PatchConvNet(multiclass=...)``, or the neck
    :class:`AttentionPool`. Touvron's thesis (2022), section 5.2.1. Weights of
    a ``LinearClsHead`` can be loaded: each class takes over its row.

    Args:
        num_classes (int): Number of classes K, ``multiclass`` of what is
            before the head.
        in_channels (int): Channels C of a vector.
        loss (dict): Config of the loss. Defaults to
            ``dict(type='CrossEntropyLoss', loss_weight=1.0)``.
        topk (int | Sequence[int]): Top-k accuracies. Defaults to (1, ).
        cal_acc (bool): Whether to log the training accuracy.
            Defaults to False.
        init_cfg (dict, optional): Initialization config. Defaults to None:
            a truncated normal of standard deviation 0.02, biases of zero.

    Raises:
        ValueError: If a size is not a positive integer; in ``forward``, if
            the vectors are not one a class.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        loss: dict = dict(type='CrossEntropyLoss', loss_weight=1.0),
        topk: int | Sequence[int] = (1,),
        cal_acc: bool = False,
        init_cfg: dict | None = None,
    ):
        topk = (topk,) if isinstance(topk, int) else topk
        super().__init__(loss, topk, cal_acc, init_cfg)
        check_sizes(num_classes=num_classes, in_channels=in_channels)
        self.num_classes = num_classes
        self.in_channels = in_channels
        drawn = torch.zeros(num_classes, in_channels)
        self.weight = nn.Parameter(nn.init.trunc_normal_(drawn, std=0.02))
        self.bias = nn.Parameter(torch.zeros(num_classes))
        self._register_load_state_dict_pre_hook(self._load_hook)

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """The vectors (B, K, C) of the last output."""
        x = feats[-1]
        if x.shape[1:] != self.weight.shape:
            K, C = self.weight.shape
            raise ValueError(
                f'PerClassHead(num_classes={K}, in_channels={C}) reads one '
                f'vector a class (B, {K}, {C}), not {tuple(x.shape)}: set '
                f'multiclass={K} in PatchConvNet or AttentionPool, or take '
                'LinearClsHead for one vector an image'
            )
        return x

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Vectors (B, K, C) to class scores (B, K)."""
        x = self.pre_logits(feats) * self.weight
        return x.sum(dim=-1) + self.bias

    def _load_hook(self, state_dict, prefix, *_):
        """Take over the rows of a linear head of as many classes."""
        own = dict(weight=self.weight, bias=self.bias)
        rows = {name: state_dict.get(f'{prefix}fc.{name}') for name in own}
        if any(
            row is None or row.shape != own[k].shape for k, row in rows.items()
        ):
            return
        for name, row in rows.items():
            del state_dict[f'{prefix}fc.{name}']
            state_dict[prefix + name] = row
        MMLogger.get_current_instance().info(
            f'{prefix}weight and bias: each class has its row of the linear '
            f'head {prefix}fc'
        )
