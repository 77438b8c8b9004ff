# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare the predictions of models, and the two class tokens of a model."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from mmpretrain.models import BaseClassifier
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.models.backbones import Reducible
from mmclca.models.heads import DistilledHead
from mmclca.models.heads.token_heads import OUTPUTS
from mmclca.models.recording import layer_outputs

CAPTIONS = dict(cls='CLS', dist='distillation token', logits='both')


@torch.no_grad()
def decisions(
    name: str, model: BaseClassifier, images: Iterable[Tensor]
) -> dict[str, Tensor]:
    """Predict image classes with each classifier of a model.

    Args:
        name (str): Name of the model in the output.
        model (BaseClassifier): Any classifier, in eval mode.
        images (Iterable[Tensor]): Batches (B, 3, H, W).

    Returns:
        dict[str, Tensor]: Labels (N,) by name: one entry, or one each for CLS,
        the distillation token and both.
    """
    if not isinstance(dict(model.named_children()).get('head'), DistilledHead):
        return {name: torch.cat([model(x).argmax(1) for x in images])}
    pairs = [model.head.token_scores(model.extract_feat(x)) for x in images]
    return {
        f'{name}, {caption}': torch.cat(
            [OUTPUTS[output](cls, dist).argmax(1) for cls, dist in pairs]
        )
        for output, caption in CAPTIONS.items()
    }


def disagreement(labels: Iterable[Tensor]) -> Tensor:
    """Return the share of images with different labels per pair, (M, M).

    Touvron's thesis (2022), Table 3.4.

    Args:
        labels (Iterable[Tensor]): Predicted labels (N,) of M classifiers.
    """
    rows = torch.stack([*labels])
    return (rows[:, None] != rows).double().mean(dim=-1)


@torch.no_grad()
def token_cosines(model: nn.Module, images: Iterable[Tensor]) -> Tensor:
    """Compute the cosine similarity of CLS and distillation token per layer.

    Touvron's thesis (2022), section 3.3.2: 0.06 before the first layer of its
    DeiT, 0.93 after the last.

    Args:
        model (nn.Module): A classifier whose backbone has both tokens.
        images (Iterable[Tensor]): Batches (B, 3, H, W).

    Returns:
        Tensor: (L + 1,), before the first layer and after each one, averaged
        over images.

    Raises:
        Error: If the backbone lacks a distillation token.
    """
    if not (
        isinstance(model.backbone, Reducible) and model.backbone.is_distilled
    ):
        raise Error(
            f'{type(model.backbone).__name__} has no distillation token to '
            'compare with CLS; set dist_token=True'
        )
    compute_layers = layer_outputs(model, lambda x, left: x[:, :2])
    cosines = []
    for x in images:
        first = model.backbone.embed(x)[0].features[:, :2]
        pairs = torch.stack([first, *compute_layers(x)])
        cls_tokens, dist_tokens = pairs.unbind(2)
        cosines.append(F.cosine_similarity(cls_tokens, dist_tokens, dim=-1))
    return torch.cat(cosines, dim=1).mean(dim=1)
