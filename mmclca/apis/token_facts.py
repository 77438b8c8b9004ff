# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Facts of an image: its tokens, and what the last CLS attends to."""

import torch
import torch.nn.functional as F
from mmpretrain.structures import DataSample
from torch import Tensor, nn

from mmclca.evaluation.cost import MacCounter
from mmclca.models import as_reducible, recording
from mmclca.models.reduction.tokens import Tokens


class LastLayerRecorder(recording.Recorder):
    """Records the tokens of each layer, features of the last one only."""

    def observe(self, *layer_tensors):
        for layer in self.layers[-1:]:
            layer.entered = _bare(layer.entered)
            layer.left = _bare(layer.left)
        super().observe(*layer_tensors)


def _bare(tokens: Tokens) -> Tokens:
    """Drop the features, which take the memory."""
    return tokens.with_x(tokens.x.new_empty(*tokens.x.shape[:2], 0))


class MacCounts:
    """Multiply-accumulates that an image takes, each kind counted once."""

    def __init__(self, model: nn.Module):
        self.model = model
        self.counted = {}

    def __call__(self, image: Tensor, tokens: list[int]) -> int:
        """Count as ``Cost.flops`` does.

        Args:
            image (Tensor): The preprocessed image, (3, H, W).
            tokens (list[int]): Tokens that leave each layer; they depend on
                nothing else.
        """
        key = (*image.shape, *tokens)
        if key not in self.counted:
            counter = MacCounter()
            with counter:
                self.model(image[None])
            self.counted[key] = counter.others()
        return self.counted[key]


def check_tokens(model: nn.Module) -> None:
    """Refuse a model whose tokens cannot be recorded.

    Raises:
        ValueError: If the backbone does not support recording, or has no CLS
            token.
    """
    backbone = as_reducible(model.backbone)
    if not backbone.has_cls:
        raise ValueError(
            f'return_tokens needs the attention of CLS: {backbone.why_no_cls}'
        )


def predict_with_facts(
    model: nn.Module, count: MacCounts, data: dict
) -> list[DataSample]:
    """Predict images, with statistics of their tokens.

    Args:
        model (nn.Module): A classifier that :func:`check_tokens` passes.
        count (MacCounts): Of the same model.
        data (dict): What the preprocessor made of images.

    Returns:
        list[DataSample]: Predictions, with what :func:`token_facts` says and
        ``gmacs``.
    """
    copied = recording.recording_copy(model, LastLayerRecorder)
    samples = copied(**data, mode='predict')
    backbone, images = as_reducible(model.backbone), data['inputs']
    layers = copied.backbone.recorder.layers
    read = backbone.last_cls_attention(images, layers[-1].entered)
    facts = token_facts(layers, read, recording.grid_of(backbone, images))
    for sample, image, fact in zip(samples, images, facts, strict=True):
        gmacs = count(image, fact['tokens']) / 1e9
        sample.set_data(dict(fact, gmacs=gmacs))
    return samples


def token_facts(
    layers: list[recording.Recorded],
    read: tuple[Tensor, Tokens],
    hw: tuple[int, int],
) -> list[dict]:
    """Describe what became of the tokens of each image of a batch.

    Returns:
        list[dict]: ``tokens``, ``kept``, ``attribution`` and
        ``cls_attention`` of each image; see
        :class:`TokenReductionInferencer`.
    """
    attention, weights = read[0], read[1].patch_weights
    left = [layer.left for layer in layers]
    counts = [(tokens.weights > 0).sum(dim=1) for tokens in left]
    counts = torch.stack(counts, dim=1).tolist()
    kept = [
        stage.cpu().numpy() for stage in recording.survivor_maps(left[-1], hw)
    ]
    attribution, painted = (
        spread(attention, weights).unflatten(1, hw).cpu().numpy()
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
    """Attention to tokens as attention to the patches that they stand for.

    A token hands what it gets to its patches, in proportion to their weights
    in it. What CLS, registers and cached tokens get is left out, and the rest
    scaled to a sum of 1.

    Args:
        attention (Tensor): Of CLS to each token, (B, N).
        weights (Tensor): Weights of the patches in each token, (B, N, P).

    Returns:
        Tensor: (B, P); all zero where no token stands for a patch.
    """
    patches = recording.share_out(attention, weights)
    return F.normalize(patches, p=1, dim=-1)


def paint_attention(attention: Tensor, weights: Tensor) -> Tensor:
    """Give each patch the attention to the token that it mostly goes into.

    Args:
        attention (Tensor): Of CLS to each token, (B, N).
        weights (Tensor): Weights of the patches in each token, (B, N, P).

    Returns:
        Tensor: (B, P); 0 where a patch was dropped.
    """
    token = recording.assigned(weights)
    return attention.gather(1, token.clamp(min=0)) * (token >= 0)
