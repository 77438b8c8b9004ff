# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""SIM-Trans: spatial structure of the patches with high CLS attention."""

from collections.abc import Sequence
from math import isqrt
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS

from ..heads import Head
from ..reduction.tokens import Tokens
from .vit import BaselineViT, ObservedTokens

SLOPE = 0.2  # negative slope of LeakyReLU
HIDDEN = 512  # hidden channels of the graph convolutions


def structure(attn: Tensor, side: int) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the graph of patches with CLS attention above the mean.

    ``attn`` (B, H, n) is the attention from CLS to a square grid with ``side``
    patches per row. Returns distance and angle to the anchor, the patch with
    the highest attention, (B, n, 2), zero for patches not above the mean;
    weights g (B, n), where g g^T is the adjacency matrix; and the indices of
    the anchors (B,).
    """
    total = attn.sum(dim=1, keepdim=True)
    mask = (total > total.mean(dim=-1, keepdim=True)).to(attn)
    weights = (attn * mask).mean(dim=1)
    anchor = weights.argmax(dim=-1)
    places = torch.arange(side * side, device=attn.device)
    grid = torch.stack((places // side, places % side), dim=-1)
    rows, columns = ((grid - grid[anchor, None]).to(attn) / side).unbind(-1)
    distance = (rows.square() + columns.square()).sqrt()
    angle = (torch.atan2(columns, rows) / torch.pi + 1) / 2
    nodes = torch.stack((distance, angle), dim=-1)
    return nodes * mask.transpose(1, 2), weights, anchor


class StructureGCN(nn.Module):
    """Two graph convolutions; the output is the anchor's feature.

    The adjacency matrix g g^T has rank one and is never computed.
    """

    def __init__(self, embed_dims: int, drop_rate: float):
        super().__init__()
        self.gc1 = _uniform(2, HIDDEN)
        self.gc2 = _uniform(HIDDEN, embed_dims)
        self.drop = nn.Dropout(drop_rate)

    def forward(self, attn: Tensor, side: int) -> Tensor:
        """Map CLS attention to patches, (B, H, n), to an update (B, 1, C)."""
        nodes, weights, anchor = structure(attn, side)
        row = weights.unsqueeze(1)
        hidden = row.mT @ ((row @ nodes) @ self.gc1)  # (B, n, HIDDEN)
        hidden = self.drop(F.leaky_relu(hidden, SLOPE)).relu()
        summed = (row @ self.drop(hidden)) @ self.gc2
        weight = row.gather(2, anchor[:, None, None])
        return self.drop(F.leaky_relu(weight * summed, SLOPE))


def _uniform(*shape: int) -> nn.Parameter:
    """Sample uniformly within 1 / sqrt(outputs), as in the public code."""
    return nn.Parameter((2 * torch.rand(shape) - 1) / shape[1] ** 0.5)


@MODELS.register_module()
class SIMTrans(BaselineViT):
    """SIM-Trans: CLS learns the spatial structure of attended patches.

    `SIM-Trans: Structure Information Modeling Transformer for Fine-grained
    Visual Categorization <https://arxiv.org/abs/2208.14607>`_. In the last
    three layers, :class:`StructureGCN` updates CLS; all three normalized CLS
    tokens are returned, for a :class:`SIMTransHead`. Unlike the public code,
    it applies no dropout in evaluation and omits unused parameters. For its
    contrastive loss use :class:`ContrastiveClassifier`.

    Args:
        arch (str | dict): See :class:`BaselineViT`. Defaults to 'base'.
        img_size (int | tuple[int, int]): See :class:`BaselineViT`. Defaults to
            224.
        patch_size (int | tuple[int, int]): See :class:`BaselineViT`. Defaults
            to 16.
        stride (int | tuple[int, int], optional): See :class:`BaselineViT`.
            Defaults to None, ``patch_size``.
        last_block (str): See :class:`BaselineViT`. Defaults to 'new'.
        **vit: Other arguments of :class:`BaselineViT`; ``drop_rate`` also
            applies to the graph convolutions.

    Raises:
        Error: See :class:`BaselineViT`; if the patch grid is not square,
            or the model has fewer than three layers.
    """

    min_layers = 3
    may_be_new = ('structure.',)

    def __init__(
        self,
        arch: str | dict = 'base',
        img_size: int | tuple[int, int] = 224,
        patch_size: int | tuple[int, int] = 16,
        *,
        stride: int | tuple[int, int] | None = None,
        last_block: Literal['new', 'pretrained'] = 'new',
        **vit,
    ):
        super().__init__(
            arch,
            img_size,
            patch_size,
            stride=stride,
            last_block=last_block,
            **vit,
        )
        drop_rate = vit.get('drop_rate', 0.0)
        self.structure = StructureGCN(self.embed_dims, drop_rate)
        depth = len(self.all_layers)
        self.out_indices = list(range(depth - self.min_layers, depth))

    def check_grid(self, height: int, width: int) -> None:
        """Refuse a grid that is not square."""
        if height != width:
            raise Error(
                f'SIMTrans needs a square grid of patches, found {height} x '
                f'{width}; use square images'
            )

    def after_layer(self, i: int, tokens: ObservedTokens) -> Tokens:
        """See :class:`Reducible`; updates CLS in the last three layers."""
        attended = tokens.attended.pop()
        if i not in self.out_indices:
            return tokens
        attn = attended.cls_attn()[:, :, 1:]
        update = self.structure(attn, isqrt(attn.size(-1)))
        x = tokens.features
        return tokens.with_features(
            torch.cat((x[:, :1] + update, x[:, 1:]), dim=1)
        )


@MODELS.register_module()
class SIMTransHead(Head):
    """Two linear layers over three CLS tokens, for :class:`SIMTrans`.

    BatchNorm, linear layer, BatchNorm, ELU and linear layer, as in the public
    code. In training, a batch needs at least two images.

    Args:
        num_classes (int): Number of classes.
        in_channels (int): Channels C of a CLS token, ``embed_dims`` in the
            backbone.
        topk (int | Sequence[int]): Numbers k of the top-k accuracies that are
            computed. Defaults to (1,).
        **head: ``loss``, ``cal_acc`` and ``init_cfg`` of mmpretrain's
            ``ClsHead``. Without ``init_cfg``, PyTorch's default
            initialization applies.

    Raises:
        Error: If a size is not a positive integer.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        topk: int | Sequence[int] = (1,),
        **head,
    ):
        super().__init__(num_classes, in_channels, topk, **head)
        joined, hidden = 3 * in_channels, 1024
        self.layers = nn.Sequential(
            nn.BatchNorm1d(joined),
            nn.Linear(joined, hidden),
            nn.BatchNorm1d(hidden),
            nn.ELU(),
            nn.Linear(hidden, num_classes),
        )

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Map three CLS tokens (B, C) to features (B, 1024)."""
        return self.layers[:-1](torch.cat(feats, dim=-1))

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Map three CLS tokens (B, C) to class scores (B, num_classes)."""
        return self.layers[-1](self.pre_logits(feats))
