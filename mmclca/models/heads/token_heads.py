# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Heads over several tokens of the last layer."""

from collections.abc import Sequence
from math import log
from typing import Literal

import torch
from mmengine.logging import MMLogger
from mmpretrain.structures import DataSample
from torch import Tensor, nn

from mmclca.checkpoints.report import LoadReport
from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice

from ..layers.deit_init import TRUNC_NORMAL, trunc_normal
from .base import Head

# output from the scores (B, K) of CLS and the distillation token
OUTPUTS = dict(
    logits=lambda cls, dist: (cls + dist) / 2,
    # logarithm of the mean softmax, accurate for tiny values
    softmax=lambda cls, dist: (
        torch.stack((cls, dist)).log_softmax(dim=-1).logsumexp(dim=0) - log(2)
    ),
    cls=lambda cls, dist: cls,
    dist=lambda cls, dist: dist,
)


@MODELS.register_module()
class DistilledHead(Head):
    """Two linear classifiers, for CLS and for the distillation token.

    `Training data-efficient image transformers & distillation through
    attention`, section 3.2. In training mode, ``forward`` returns both scores,
    since each has its loss; without a teacher, the loss is the mean of both
    losses on the labels. In eval mode, it returns one score per class, see
    ``output``. Parameters are named as in mmpretrain's ``DeiTClsHead``.

    :class:`TokenReductionClassifier` checks that the backbone returns both
    tokens; a plain ``ImageClassifier`` does not.

    Args:
        num_classes (int): Number of classes K.
        in_channels (int): Channels C of a token.
        output (str): Output in eval mode: 'logits', the mean score, as used
            for the released weights; 'softmax', the logarithm of the mean
            softmax (late fusion in the paper); 'cls' or 'dist', the scores of
            one token. Defaults to 'logits'.
        init_cfg (dict, optional): Initialization config. Defaults to
            ``dict(type='TruncNormal', layer='Linear', std=0.02)``.
        topk (int | Sequence[int]): Numbers k of the top-k accuracies that are
            computed. Defaults to (1,).
        **head: ``loss`` and ``cal_acc`` for mmpretrain's ``ClsHead``.

    Raises:
        Error: If a size is not a positive integer, or ``output`` is
            unknown.
    """

    accepts_dist_token = True
    has_class_loss = True

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        output: Literal['logits', 'softmax', 'cls', 'dist'] = 'logits',
        init_cfg: dict | None = TRUNC_NORMAL,
        topk: int | Sequence[int] = (1,),
        **head,
    ):
        super().__init__(
            num_classes, in_channels, topk, init_cfg=init_cfg, **head
        )
        check_choice(OUTPUTS, output=output)
        self.output = output
        self.layers = nn.ModuleDict()
        for name in ('head', 'head_dist'):
            self.layers[name] = nn.Linear(in_channels, num_classes)

    def check(self, backbone: nn.Module, with_neck: bool) -> None:
        """See :class:`Head`."""
        super().check(backbone, with_neck)
        if not (backbone.is_distilled and backbone.out_type == 'prefix'):
            raise Error(
                f'{type(backbone).__name__} has no distillation token for '
                'DistilledHead; use mmclca.TokenReductionViT with '
                "dist_token=True, out_type='prefix'"
            )

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Concatenate the tokens (B, 2, C) of the last output, (B, 2C)."""
        return feats[-1].flatten(1)

    def token_scores(self, feats: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Return class scores (B, K) of CLS and the distillation token."""
        cls_token, dist_token = self.pre_logits(feats).chunk(2, dim=1)
        return self.layers.head(cls_token), self.layers.head_dist(dist_token)

    def forward(
        self, feats: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor] | Tensor:
        """Map outputs of the backbone, the last (B, 2, C), to scores (B, K).

        Returns a pair in training mode, and one score in eval mode.
        """
        scores = self.token_scores(feats)
        return scores if self.training else OUTPUTS[self.output](*scores)

    def loss(
        self,
        feats: tuple[Tensor, ...],
        data_samples: list[DataSample],
        **kwargs,
    ) -> dict[str, Tensor]:
        """Return the mean loss of both outputs, in either mode.

        Accuracies are measured on CLS. See ``ClsHead.loss``.
        """
        cls, dist = (
            self._get_loss(scores, data_samples, **kwargs)
            for scores in self.token_scores(feats)
        )
        return dict(cls, loss=(cls['loss'] + dist['loss']) / 2)


@MODELS.register_module()
class PerClassHead(Head):
    """Linear classifier with one feature vector per class.

    For one query per class: ``PatchConvNet(multiclass=...)``, or the neck
    :class:`AttentionPool`. Touvron's thesis (2022), section 5.2.1. It also
    loads ``LinearClsHead`` weights, one row per class.

    Args:
        num_classes (int): Number of classes K, equal to ``multiclass`` of the
            pooling.
        in_channels (int): Channels C of a vector.
        topk (int | Sequence[int]): Numbers k of the top-k accuracies that are
            computed. Defaults to (1,).
        **head: ``loss``, ``cal_acc`` and ``init_cfg`` for mmpretrain's
            ``ClsHead``. Without ``init_cfg``, weights start from
            a truncated normal of standard deviation 0.02, biases from zero.

    Raises:
        Error: If a size is not a positive integer; in ``forward``, if
            there is not one vector per class.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        topk: int | Sequence[int] = (1,),
        **head,
    ):
        super().__init__(num_classes, in_channels, topk, **head)
        self.weight = nn.Parameter(trunc_normal(num_classes, in_channels))
        self.bias = nn.Parameter(torch.zeros(num_classes))
        self._register_load_state_dict_pre_hook(self._load_hook)

    def check(self, backbone: nn.Module, with_neck: bool) -> None:
        """Raise without a neck; the neck may change the channels."""
        if not with_neck:
            raise Error(
                'PerClassHead needs one vector per class; use the neck '
                'mmclca.AttentionPool(multiclass=...) with '
                "out_type='featmap', or mmclca.PatchConvNet(multiclass=...)"
            )

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Return the vectors (B, K, C) of the last output."""
        x = feats[-1]
        if x.shape[1:] != self.weight.shape:
            K, C = self.weight.shape
            raise Error(
                f'PerClassHead needs one vector per class, (B, {K}, {C}), '
                f'found {tuple(x.shape)}; set multiclass={K} in the pooling'
            )
        return x

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Map vectors (B, K, C) to class scores (B, K)."""
        x = self.pre_logits(feats) * self.weight
        return x.sum(dim=-1) + self.bias

    def _load_hook(self, state_dict: dict, prefix: str, *_) -> None:
        self.adapt_state_dict(state_dict, prefix, LoadReport('the weights'))

    def adapt_state_dict(
        self, weights: dict[str, Tensor], prefix: str, report: LoadReport
    ) -> None:
        """Take the rows of a linear head of equal size.

        Args:
            weights (dict[str, Tensor]): Weights, changed in place.
            prefix (str): Prefix of the head.
            report (LoadReport): Not changed, as nothing is resized.
        """
        parameters = dict(weight=self.weight, bias=self.bias)
        for name, parameter in parameters.items():
            row = weights.get(f'{prefix}fc.{name}')
            if row is None or row.shape != parameter.shape:
                return
        for name in parameters:
            weights[prefix + name] = weights.pop(f'{prefix}fc.{name}')
        MMLogger.get_current_instance().info(
            f'{prefix}weight and bias: loaded from the linear head '
            f'{prefix}fc, one row per class'
        )
