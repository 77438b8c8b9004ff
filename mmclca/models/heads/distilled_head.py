# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from math import log

import torch
from mmpretrain.models.heads import ClsHead
from mmpretrain.structures import DataSample
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.known_names import not_one_of

from .cla_head import check_sizes


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
class DistilledHead(ClsHead):
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
        loss (dict): Config of the loss. Defaults to
            ``dict(type='CrossEntropyLoss', loss_weight=1.0)``.
        topk (int | Sequence[int]): Top-k accuracies. Defaults to (1, ).
        cal_acc (bool): Whether to log the training accuracy, that of CLS.
            Defaults to False.
        init_cfg (dict): Initialization config. Defaults to
            ``dict(type='TruncNormal', layer='Linear', std=0.02)``.

    Raises:
        ValueError: If a size is not a positive integer, or ``fusion`` is
            none of the above.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        fusion: str = 'logits',
        loss: dict = dict(type='CrossEntropyLoss', loss_weight=1.0),
        topk: int | Sequence[int] = (1,),
        cal_acc: bool = False,
        init_cfg: dict | None = dict(
            type='TruncNormal', layer='Linear', std=0.02
        ),
    ):
        topk = (topk,) if isinstance(topk, int) else topk
        super().__init__(loss, topk, cal_acc, init_cfg)
        check_sizes(num_classes=num_classes, in_channels=in_channels)
        if fusion not in FUSIONS:
            raise ValueError(f'fusion: {not_one_of(fusion, FUSIONS)}')
        self.num_classes = num_classes
        self.in_channels = in_channels
        self.fusion = fusion
        self.layers = nn.ModuleDict(
            dict(
                head=nn.Linear(in_channels, num_classes),
                head_dist=nn.Linear(in_channels, num_classes),
            )
        )

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """The two tokens (B, 2, C) of the last output, as one (B, 2C)."""
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
