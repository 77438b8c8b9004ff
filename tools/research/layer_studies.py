# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Layer studies: attention, frequencies, accuracy, principal components.

The figures of `A Closer Look at Self-Supervised Lightweight Vision
Transformers`. A study takes a model and a function that reads batches of
square images again at each call. It returns tables (X, S) of S curves by
title, for :func:`.draw_curves`. Only features or a few numbers per layer stay
in memory, never the attention.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial

import torch
import torch.nn.functional as F
from cka import feature_reader
from torch import Tensor, nn

from mmclca.datasets.batches import Batch
from mmclca.errors import Error
from mmclca.models.recording import (
    AttentionRecorder,
    layer_outputs,
    recording_copy,
)
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.retrievers import cosine_similarity, nearest_votes
from mmclca.utils.random_state import preserve_random_state
from mmclca.visualization.tsne import collect, image_features

Read = Callable[[], Iterable[Batch]]


def layer_features(
    model: nn.Module, batches: Iterable[Batch], feature: str = 'cls'
) -> tuple[Tensor, list[int]]:
    """Extract one feature per image in each layer, (L, N, C), with labels."""
    look = layer_outputs(model, feature_reader(model, feature))
    return collect(batches, lambda images: torch.stack(look(images)), dim=1)


def _image_mean(batches: Iterable[Batch], look: Callable) -> Tensor:
    """Average outputs (L, B, ...) over all images."""
    return collect(batches, look, dim=1)[0].mean(dim=1)


def _summaries(model: nn.Module, summary: Callable, images: Tensor) -> Tensor:
    """Summarize the attention in each layer, (L, B, ...)."""
    backbone = recording_copy(model, AttentionRecorder).backbone
    backbone.recorder.summary = summary
    backbone.forward_tokens(images)
    return torch.stack([layer.attn for layer in backbone.recorder.layers])


def attention(model: nn.Module, read: Read) -> dict[str, Tensor]:
    """Measure attention distance and entropy per head, both (L, H).

    Distances are in patches, between mean patch positions, over tokens that
    represent patches. Entropy is in nats, over all tokens. Both are means over
    tokens and images.
    """
    values = _image_mean(read(), partial(_summaries, model, _spread))
    return dict(zip(('distance', 'entropy'), values.unbind(-1), strict=True))


def _spread(weights: Tensor, tokens: Tokens) -> Tensor:
    """Distance and entropy, (B, H, 2), from attention (B, H, N, N)."""
    share = tokens.patch_weights.to(weights)
    line = torch.arange(_grid_side(share)).to(share)
    places = torch.cartesian_prod(line, line)
    at = F.normalize(share, p=1, dim=-1) @ places  # (B, N, 2)
    has_share = share.any(dim=-1, keepdim=True).to(share)  # (B, N, 1)
    pairs = F.normalize(weights * has_share.mT[:, None], p=1, dim=-1)
    far = (pairs * torch.cdist(at, at)[:, None]).sum(dim=-1)  # (B, H, N)
    far = (far @ has_share).squeeze(-1) / has_share.sum(dim=1)
    entropy = torch.special.entr(weights).sum(dim=-1).mean(dim=-1)
    return torch.stack((far, entropy), dim=-1)


@torch.no_grad()
def maps(
    first: nn.Module, second: nn.Module, pairs: Iterable[tuple[Batch, Batch]]
) -> Tensor:
    """Compare layer attention by cosine similarity over patch pairs.

    ``pairs`` are batches of the same images for both models. Returns the mean
    over images, (L, M). Raises an Error if the numbers of patches differ.
    """
    values = []
    for batches in pairs:
        seen = [
            F.normalize(_summaries(model, _patch_map, batch.images), dim=-1)
            for model, batch in zip((first, second), batches, strict=True)
        ]
        if len({x.shape[-1] for x in seen}) > 1:
            raise Error(
                'the models have different numbers of patches: use the same '
                'image size and patch size'
            )
        values.append(torch.einsum('lbp,mbp->blm', *seen).cpu())
    return torch.cat(values).mean(dim=0)


def _patch_map(weights: Tensor, tokens: Tokens) -> Tensor:
    """Attention between patches (B, P * P), averaged over heads."""
    share = tokens.patch_weights.to(weights)
    asks, answers = (F.normalize(share, p=1, dim=dim) for dim in (1, 2))
    return (asks.mT @ weights.mean(dim=1) @ answers).flatten(1)


def _grid_side(share: Tensor) -> int:
    """Side length of the square patch grid, from weights (B, N, P)."""
    patches = share.shape[-1]
    side = round(patches**0.5)
    if side**2 != patches:
        raise Error(
            f'{patches} patches do not form a square grid: resize images to '
            'squares in the test pipeline'
        )
    return side


def fourier(model: nn.Module, read: Read) -> dict[str, Tensor]:
    """Measure spatial feature frequencies over the patch grid.

    `How Do Vision Transformers Work?`, section 3: log amplitude along the
    diagonal, relative to frequency 0. Returns ``amplitude`` (F, L), and
    ``highest``, its last row (L, 1).
    """

    def curve(x: Tensor, left: Tokens) -> Tensor:
        share = left.patch_weights.to(x)
        grid = x.mT @ F.normalize(share, p=1, dim=1)
        grid = grid.unflatten(-1, (_grid_side(share), -1))
        values = torch.fft.fft2(grid).abs().clamp_min(1e-12).log().mean(dim=1)
        values = values.diagonal(dim1=1, dim2=2)[
            :, : _grid_side(share) // 2 + 1
        ]
        return values - values[:, :1]

    look = layer_outputs(model, curve)
    values = _image_mean(read(), lambda images: torch.stack(look(images)))
    return dict(amplitude=values.T, highest=values[:, -1:])


def reinit(model: nn.Module, read: Read) -> dict[str, Tensor]:
    """Measure accuracy with the first or last k layers reinitialized.

    Every call uses the same random weights. Returns ``first`` and ``last``, (L
    + 1, 1): accuracy when the five nearest other images vote, by cosine
    similarity between backbone features.
    """
    number = len(recording_copy(model).backbone.layers)
    values = []
    for k in range(number + 1):
        ends = range(k), range(number - k, number)
        values.append(
            [_accuracy(_reinitialized(model, x), read) for x in ends]
        )
    first, last = torch.tensor(values).T[..., None]
    return dict(first=first, last=last)


def _reinitialized(model: nn.Module, layers: Iterable[int]) -> nn.Module:
    copied = deepcopy(model)
    with preserve_random_state():
        torch.manual_seed(0)
        for layer in layers:
            for part in copied.backbone.layers[layer].modules():
                if hasattr(part, 'reset_parameters'):
                    part.reset_parameters()
    return copied


def _accuracy(model: nn.Module, read: Callable) -> float:
    features, labels = image_features(model, read(), 'backbone')
    labels, number = renumbered(labels)
    similarity = cosine_similarity(features, features).fill_diagonal_(-2)
    votes = nearest_votes(similarity, labels, number)
    return (votes.argmax(dim=1) == labels).double().mean().item()


def renumbered(labels: list[int]) -> tuple[Tensor, int]:
    """Renumber labels from 0; return them with the class count.

    Raises an Error without labels.
    """
    if not labels:
        raise Error('accuracy needs labels: choose a labeled --split')
    classes, values = torch.tensor(labels).unique(return_inverse=True)
    return values, len(classes)


def pca(model: nn.Module, read: Read) -> dict[str, Tensor]:
    """Measure the variance explained by the first principal components.

    For final features of unit length. Touvron's thesis, section 2.6: the curve
    bends at the number of learned classes. Returns ``energy``, (min(N, C) + 1,
    1), from 0 to 1.
    """
    unit = F.normalize(image_features(model, read())[0].double(), dim=1)
    squares = torch.linalg.svdvals(unit - unit.mean(dim=0)).square()
    share = squares.cumsum(dim=0) / squares.sum()
    return dict(energy=F.pad(share, (1, 0))[:, None])
