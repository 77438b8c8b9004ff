# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Whether a head reads what its backbone gives."""

from mmpretrain.models.heads import LinearClsHead, VisionTransformerClsHead
from torch import nn

from ..backbones import Reducible
from ..heads import CLAHead, DistilledHead, LayerFusionHead, PerClassHead


def check_head(
    backbone: Reducible, head: nn.Module | None, with_neck: bool
) -> None:
    """Refuse a head that does not fit its backbone; any other kind passes.

    Args:
        backbone (Reducible): The backbone.
        head (nn.Module, optional): The head.
        with_neck (bool): Whether a neck is between them.

    Raises:
        ValueError: See :class:`TokenReductionClassifier`.
    """
    if isinstance(head, CLAHead | LayerFusionHead):
        _check_layers(backbone, head)
    if isinstance(head, CLAHead | LayerFusionHead | DistilledHead):
        _check_channels(backbone, head)
    if isinstance(head, CLAHead):
        backbone.check_cla()
    if isinstance(head, DistilledHead):
        _check_distilled(backbone)
    if isinstance(head, PerClassHead) and not with_neck:
        raise ValueError(
            'PerClassHead reads one vector a class, '
            f'{type(backbone).__name__} has none: use mmclca.PatchConvNet('
            "multiclass=...) in an ImageClassifier, out_type='featmap' with "
            'the neck mmclca.AttentionPool(multiclass=...), or another head'
        )
    reads_one = isinstance(head, LinearClsHead | VisionTransformerClsHead)
    if reads_one and backbone.is_distilled:
        raise ValueError(
            f'{type(head).__name__} does not read the distillation token '
            "(dist_token=True): use dict(type='mmclca.DistilledHead', "
            "num_classes=..., in_channels=...), with fusion='cls' for CLS "
            'alone'
        )
    reads_both = isinstance(head, CLAHead | DistilledHead) or head is None
    two_tokens = backbone.is_distilled and backbone.out_type == 'prefix'
    if two_tokens and not reads_both:
        raise ValueError(
            f'{type(head).__name__} does not read the two tokens of '
            "out_type='prefix', CLS and the distillation token: use "
            'mmclca.DistilledHead, or set another out_type in the backbone '
            "('cls_token', for example)"
        )


def _check_layers(backbone: Reducible, head: CLAHead | LayerFusionHead):
    layers = range(len(backbone.layers))
    num_layers = sum(i in backbone.out_indices for i in layers)
    if head.num_layers != num_layers:
        raise ValueError(
            f'{type(head).__name__}(num_layers={head.num_layers}) reads '
            'another number of layers than the backbone returns: out_indices='
            f'{tuple(backbone.out_indices)} names {num_layers} of its layers '
            f'0 to {layers[-1]}, set num_layers to the same'
        )


def _check_channels(backbone: Reducible, head: nn.Module) -> None:
    if head.in_channels != backbone.embed_dims:
        raise ValueError(
            f'{type(head).__name__}(in_channels={head.in_channels}) does not '
            f'fit the backbone: set in_channels={backbone.embed_dims}'
        )


def _check_distilled(backbone: Reducible) -> None:
    if not backbone.is_distilled:
        raise ValueError(
            'DistilledHead reads CLS and the distillation token, which '
            f'{type(backbone).__name__} has not here: use '
            'mmclca.TokenReductionViT with dist_token=True, or another head'
        )
    if backbone.out_type != 'prefix':
        raise ValueError(
            'DistilledHead reads CLS and the distillation token: '
            f'out_type={backbone.out_type!r} is not allowed in the backbone, '
            "only 'prefix', its default beside dist_token=True"
        )
