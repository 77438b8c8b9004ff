# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Heads that read several tokens of the last output."""

from math import log
from typing import Literal

import torch
from mmengine.logging import MMLogger
from mmpretrain.models.heads import ClsHead
from mmpretrain.structures import DataSample
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import one_of

from ..layers.deit_init import TRUNC_NORMAL, trunc_normal
from .layer_heads import SizedHead


def _log_mean_softmax(cls: Tensor, dist: Tensor) -> Tensor:
    """Scores whose softmax is the mean of both, also where that is tiny."""
    both = torch.stack((cls, dist)).log_softmax(dim=-1)
    return both.logsumexp(dim=0) - log(2)


# what is made of the scores (B, K) of CLS and of the distillation token
FUSIONS = dict(
    logits=lambda cls, dist: (cls + dist) / 2,
    softmax=_log_mean_softmax,
    cls=lambda cls, dist: cls,
    dist=lambda cls, dist: dist,
)


@MODELS.register_module()
class DistilledHead(SizedHead):
    """Two linear classifiers, of CLS and of the distillation token.

    `Training data-efficient image transformers & distillation through
    attention`, section 3.2. In training mode both outputs come out, since
    each has a loss of its own: without a teacher, that of the labels, and
    the loss is the mean of the two. In eval mode they are fused. Parameters
    have the names of mmpretrain's ``DeiTClsHead``.

    That a backbone gives these two tokens is checked by
    :class:`TokenReductionClassifier` when it is built, not by a plain
    ``ImageClassifier``, and not by the head.

    Args:
        num_classes (int): Number of classes K.
        in_channels (int): Channels C of a token.
        fusion (str): What comes out in eval mode: 'logits', the mean of the
            scores, as the released weights are used; 'softmax', the mean of
            their softmax (the paper's late fusion), as its logarithm, whose
            softmax it is; 'cls' or 'dist', the scores of one token. Defaults
            to 'logits'.
        **head: ``loss``, ``topk``, ``cal_acc`` and ``init_cfg`` of
            mmpretrain's ``ClsHead``. ``init_cfg`` defaults to
            ``dict(type='TruncNormal', layer='Linear', std=0.02)``.

    Raises:
        ValueError: If a size is not a positive integer, or ``fusion`` is
            none of the above.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        fusion: Literal['logits', 'softmax', 'cls', 'dist'] = 'logits',
        init_cfg: dict | None = TRUNC_NORMAL,
        **head,
    ):
        super().__init__(num_classes, in_channels, init_cfg=init_cfg, **head)
        one_of(FUSIONS, fusion=fusion)
        self.fusion = fusion
        self.layers = nn.ModuleDict()
        for name in ('head', 'head_dist'):
            self.layers[name] = nn.Linear(in_channels, num_classes)

    def check(self, backbone: nn.Module, with_neck: bool) -> None:
        """See :class:`SizedHead`."""
        super().check(backbone, with_neck)
        if not (backbone.is_distilled and backbone.out_type == 'prefix'):
            raise ValueError(
                f'{type(backbone).__name__} has no distillation token for '
                'DistilledHead; use mmclca.TokenReductionViT with '
                "dist_token=True, out_type='prefix'"
            )

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Return the two tokens (B, 2, C) of the last output, as one (B,
        2C)."""
        return feats[-1].flatten(1)

    def both(self, feats: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Scores (B, K) of CLS and of the distillation token."""
        cls_token, dist_token = self.pre_logits(feats).chunk(2, dim=1)
        return self.layers.head(cls_token), self.layers.head_dist(dist_token)

    def forward(
        self, feats: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor] | Tensor:
        """Outputs of the backbone, the last (B, 2, C), to scores (B, K).

        Those of both tokens in training mode, fused ones in eval mode.
        """
        scores = self.both(feats)
        return scores if self.training else FUSIONS[self.fusion](*scores)

    def loss(
        self,
        feats: tuple[Tensor, ...],
        data_samples: list[DataSample],
        **kwargs,
    ) -> dict[str, Tensor]:
        """Mean of the losses of both outputs, in either mode.

        Accuracies are those of CLS. See ``ClsHead.loss``.
        """
        cls, dist = (
            self._get_loss(scores, data_samples, **kwargs)
            for scores in self.both(feats)
        )
        return dict(cls, loss=(cls['loss'] + dist['loss']) / 2)


def has_class_loss(kind: type) -> bool:
    """Return whether heads of this class compute a loss of class scores."""
    known = ClsHead.loss, DistilledHead.loss
    return issubclass(kind, ClsHead) and kind.loss in known


@MODELS.register_module()
class PerClassHead(SizedHead):
    """A linear score of each class from a vector of its own.

    For one query a class: ``PatchConvNet(multiclass=...)``, or the neck
    :class:`AttentionPool`. Touvron's thesis (2022), section 5.2.1. Weights of
    a ``LinearClsHead`` can be loaded: each class takes over its row.

    Args:
        num_classes (int): Number of classes K, ``multiclass`` of what is
            before the head.
        in_channels (int): Channels C of a vector.
        **head: ``loss``, ``topk``, ``cal_acc`` and ``init_cfg`` of
            mmpretrain's ``ClsHead``. Without ``init_cfg``, a truncated
            normal of standard deviation 0.02, biases of zero.

    Raises:
        ValueError: If a size is not a positive integer; in ``forward``, if
            the vectors are not one a class.
    """

    def __init__(self, num_classes: int, in_channels: int, **head):
        super().__init__(num_classes, in_channels, **head)
        self.weight = nn.Parameter(trunc_normal(num_classes, in_channels))
        self.bias = nn.Parameter(torch.zeros(num_classes))
        self._register_load_state_dict_pre_hook(self._load_hook)

    def check(self, backbone: nn.Module, with_neck: bool) -> None:
        """See :class:`SizedHead`; the neck has the channels."""
        if not with_neck:
            raise ValueError(
                'PerClassHead needs one vector per class; use the neck '
                'mmclca.AttentionPool(multiclass=...) with '
                "out_type='featmap', or mmclca.PatchConvNet(multiclass=...)"
            )

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Return the vectors (B, K, C) of the last output."""
        x = feats[-1]
        if x.shape[1:] != self.weight.shape:
            K, C = self.weight.shape
            raise ValueError(
                f'PerClassHead needs one vector per class, (B, {K}, {C}), '
                f'found {tuple(x.shape)}; set multiclass={K} in the pooling'
            )
        return x

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Vectors (B, K, C) to class scores (B, K)."""
        x = self.pre_logits(feats) * self.weight
        return x.sum(dim=-1) + self.bias

    def _load_hook(self, state_dict, prefix, *_):
        """Load the rows of a linear head with the same number of classes."""
        own = dict(weight=self.weight, bias=self.bias)
        for name, parameter in own.items():
            row = state_dict.get(f'{prefix}fc.{name}')
            if row is None or row.shape != parameter.shape:
                return
        for name in own:
            state_dict[prefix + name] = state_dict.pop(f'{prefix}fc.{name}')
        MMLogger.get_current_instance().info(
            f'{prefix}weight and bias: loaded from the linear head '
            f'{prefix}fc, one row per class'
        )
