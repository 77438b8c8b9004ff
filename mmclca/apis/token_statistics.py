# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Token statistics per image: counts, costs and attention of the last CLS."""

import torch
import torch.nn.functional as F
from mmengine.model import BaseModel
from mmpretrain.structures import DataSample
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.evaluation.cost import MacCounter
from mmclca.models import as_reducible, recording
from mmclca.models.reduction.tokens import Tokens


class LastLayerRecorder(recording.Recorder):
    """Record tokens in each layer, but features only in the last layer."""

    def observe(self, *layer_tensors):
        for layer in self.layers[-1:]:
            layer.entered = _drop_features(layer.entered)
            layer.left = _drop_features(layer.left)
        super().observe(*layer_tensors)


def _drop_features(tokens: Tokens) -> Tokens:
    """Drop the features to free their memory."""
    batch, number, _ = tokens.features.shape
    return tokens.with_features(tokens.features.new_empty(batch, number, 0))


class MacCounts:
    """Multiply-accumulates per image, cached by the token counts."""

    def __init__(self, model: nn.Module):
        self.model = model
        self.counted: dict[tuple, int] = {}

    def __call__(self, image: Tensor, tokens: list[int]) -> int:
        """Count multiply-accumulates like ``Cost.flops``.

        They depend only on the shape of the image, (3, H, W), and on the
        number of tokens after each layer.
        """
        key = (*image.shape, *tokens)
        if key not in self.counted:
            counter = MacCounter()
            with counter:
                self.model(image[None])
            self.counted[key] = counter.without_distances()
        return self.counted[key]


def check_tokens(model: BaseModel) -> None:
    """Raise an Error if tokens cannot be recorded, or CLS is missing."""
    backbone = as_reducible(model.backbone)
    if not backbone.has_cls:
        raise Error(
            f'return_tokens needs the attention of CLS: {backbone.why_no_cls}'
        )


def predict_with_statistics(
    model: BaseModel, count: MacCounts, data: dict
) -> list[DataSample]:
    """Classify preprocessed images, with token statistics.

    The model must pass :func:`check_tokens`. The predictions get the values of
    :func:`compute_statistics` and ``gmacs``.
    """
    copied: BaseModel = recording.recording_copy(model, LastLayerRecorder)
    samples = copied(**data, mode='predict')
    backbone, images = as_reducible(model.backbone), data['inputs']
    layers = copied.backbone.recorder.layers
    attention, attended = backbone.last_cls_attention(
        images, layers[-1].entered
    )
    statistics = compute_statistics(
        layers,
        attention,
        attended.patch_weights,
        recording.grid_of(backbone, images),
    )
    for sample, image, values in zip(samples, images, statistics, strict=True):
        gmacs = count(image, values['tokens']) / 1e9
        sample.set_data(dict(values, gmacs=gmacs))
    return samples


def compute_statistics(
    layers: list[recording.Recorded],
    attention: Tensor,
    patch_weights: Tensor,
    hw: tuple[int, int],
) -> list[dict]:
    """Compute token statistics per image from recorded layers.

    ``attention`` (B, N) is that of the last CLS, ``patch_weights`` (B, N, P)
    are the patches of the N tokens it attends to, ``hw`` is the patch grid.
    Returns ``tokens``, ``kept``, ``attribution`` and
    ``cls_attention``, see :class:`TokenReductionInferencer`.
    """
    left = [layer.left for layer in layers]
    counts = [(tokens.weights > 0).sum(dim=1) for tokens in left]
    counts = torch.stack(counts, dim=1).tolist()
    kept = [
        stage.cpu().numpy()
        for stage in recording.patch_weight_maps(left[-1], hw)
    ]
    attribution, painted = (
        spread(attention, patch_weights).unflatten(1, hw).cpu().numpy()
        for spread in (attribute, paint_attention)
    )
    return [
        dict(
            tokens=tokens,
            kept=[stage[i] for stage in kept],
            attribution=attribution[i],
            cls_attention=painted[i],
        )
        for i, tokens in enumerate(counts)
    ]


def attribute(attention: Tensor, weights: Tensor) -> Tensor:
    """Distribute attention to tokens (B, N) over their patches, (B, P).

    Each token passes its attention to its patches in proportion to their
    weights (B, N, P). Attention to CLS, registers and cached tokens is left
    out; the rest is scaled to a sum of 1, or all zero if no token represents a
    patch.
    """
    patches = recording.share_out(attention, weights)
    return F.normalize(patches, p=1, dim=-1)


def paint_attention(attention: Tensor, weights: Tensor) -> Tensor:
    """Attention (B, N) to the token with the largest weight of each patch.

    Returns (B, P), 0 for a dropped patch; ``weights`` are (B, N, P).
    """
    token = recording.assigned(weights)
    return attention.gather(1, token.clamp(min=0)) * (token >= 0)
