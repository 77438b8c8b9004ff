# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the layers of a model look like: attention, frequencies, accuracy.

The figures of `A Closer Look at Self-Supervised Lightweight Vision
Transformers`. A study takes a model and what reads batches of images anew; it
gives tables (X, S) of S curves by title, for :func:`.draw_curves`. Of an
image, which is a square, it keeps features or some numbers a layer, and never
its attention.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.datasets.batches import Batch
from mmclca.models.recording import (
    AttentionRecorder,
    layer_outputs,
    recording_copy,
)
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.retrievers import cosine_similarity, nearest_votes
from mmclca.utils.random_state import same_random_state

from .cka import feature_reader
from .tsne import collect, image_features

Read = Callable[[], Iterable[Batch]]


def layer_features(
    model: nn.Module, batches: Iterable[Batch], feature: str = 'cls'
) -> tuple[Tensor, list[int]]:
    """Compute a feature an image in each layer.

    Returns:
        tuple[Tensor, list[int]]: (L, N, C), and the classes.
    """
    look = layer_outputs(model, feature_reader(model, feature))
    return collect(batches, lambda images: torch.stack(look(images)), dim=1)


def _mean(batches: Iterable[Batch], look: Callable) -> Tensor:
    """Average what is made of images, (L, B, ...), over all of them."""
    return collect(batches, look, dim=1)[0].mean(dim=1)


def _seen(model: nn.Module, summary: Callable, images: Tensor) -> Tensor:
    """Stack what is made of the attention of each layer, (L, B, ...)."""
    backbone = recording_copy(model, AttentionRecorder).backbone
    backbone.recorder.summary = summary
    backbone.forward_tokens(images)
    return torch.stack([layer.attn for layer in backbone.recorder.layers])


def attention(model: nn.Module, read: Read) -> dict[str, Tensor]:
    """Measure how far and how widely each head looks.

    Returns:
        dict[str, Tensor]: Distance in patches, of tokens that stand for
        patches, from the mean place of these; entropy in nats, of all tokens.
        Both (L, H), means over tokens and images.
    """
    found = _mean(read(), partial(_seen, model, _spread))
    return dict(zip(('distance', 'entropy'), found.unbind(-1), strict=True))


def _spread(weights: Tensor, tokens: Tokens) -> Tensor:
    """Attention (B, H, N, N) to distance and entropy, (B, H, 2)."""
    share = tokens.patch_weights.to(weights)
    line = torch.arange(_side(share)).to(share)
    places = torch.cartesian_prod(line, line)
    at = F.normalize(share, p=1, dim=-1) @ places  # (B, N, 2)
    known = share.any(dim=-1, keepdim=True).to(share)  # (B, N, 1)
    pairs = F.normalize(weights * known.mT[:, None], p=1, dim=-1)
    far = (pairs * torch.cdist(at, at)[:, None]).sum(dim=-1)  # (B, H, N)
    far = (far @ known).squeeze(-1) / known.sum(dim=1)
    entropy = torch.special.entr(weights).sum(dim=-1).mean(dim=-1)
    return torch.stack((far, entropy), dim=-1)


@torch.no_grad()
def maps(
    first: nn.Module, second: nn.Module, pairs: Iterable[tuple[Batch, Batch]]
) -> Tensor:
    """Compare the attention of layers: cosines of maps from patch to patch.

    Args:
        first (nn.Module): A model of L layers.
        second (nn.Module): The same or another one, of M layers, with as many
            patches.
        pairs (Iterable[tuple[Batch, Batch]]): The same images for both.

    Returns:
        Tensor: (L, M), means over images.

    Raises:
        ValueError: If the numbers of patches differ.
    """
    found = []
    for batches in pairs:
        seen = [
            F.normalize(_seen(model, _patch_map, batch.images), dim=-1)
            for model, batch in zip((first, second), batches, strict=True)
        ]
        if len({x.shape[-1] for x in seen}) > 1:
            raise ValueError(
                'the models have different numbers of patches: use the same '
                'image size and patch size'
            )
        found.append(torch.einsum('lbp,mbp->blm', *seen).cpu())
    return torch.cat(found).mean(dim=0)


def _patch_map(weights: Tensor, tokens: Tokens) -> Tensor:
    """Attention (B, H, N, N) to a map (B, P * P), mean over heads."""
    share = tokens.patch_weights.to(weights)
    asks, answers = (F.normalize(share, p=1, dim=dim) for dim in (1, 2))
    return (asks.mT @ weights.mean(dim=1) @ answers).flatten(1)


def _side(share: Tensor) -> int:
    """Side of the grid, which is a square, of weights (B, N, P)."""
    patches = share.shape[-1]
    side = round(patches**0.5)
    if side**2 != patches:
        raise ValueError(
            f'{patches} patches do not form a square grid: resize images to '
            'squares in the test pipeline'
        )
    return side


def fourier(model: nn.Module, read: Read) -> dict[str, Tensor]:
    """Measure the frequencies of features over the grid of patches.

    `How Do Vision Transformers Work?`, section 3: the logarithm of the
    amplitude along the diagonal, less that of frequency 0.

    Returns:
        dict[str, Tensor]: ``amplitude``, (F, L), and ``highest``, its last
        row as a curve over layers, (L, 1).
    """

    def curve(x: Tensor, left: Tokens) -> Tensor:
        share = left.patch_weights.to(x)
        grid = x.mT @ F.normalize(share, p=1, dim=1)
        grid = grid.unflatten(-1, (_side(share), -1))
        found = torch.fft.fft2(grid).abs().clamp_min(1e-12).log().mean(dim=1)
        found = found.diagonal(dim1=1, dim2=2)[:, : _side(share) // 2 + 1]
        return found - found[:, :1]

    look = layer_outputs(model, curve)
    found = _mean(read(), lambda images: torch.stack(look(images)))
    return dict(amplitude=found.T, highest=found[:, -1:])


def reinit(model: nn.Module, read: Read) -> dict[str, Tensor]:
    """Measure what the first or last k layers give: they are drawn anew.

    Each time the same draws.

    Returns:
        dict[str, Tensor]: ``first`` and ``last``, (L + 1, 1): the share of
        images whose five nearest others, by the cosine of the backbone's
        features, vote for their class.
    """
    number = len(recording_copy(model).backbone.layers)
    found = []
    for k in range(number + 1):
        ends = range(k), range(number - k, number)
        found.append([_accuracy(_reinitialized(model, x), read) for x in ends])
    first, last = torch.tensor(found).T[..., None]
    return dict(first=first, last=last)


def _reinitialized(model: nn.Module, layers: Iterable[int]) -> nn.Module:
    copied = deepcopy(model)
    with same_random_state():
        torch.manual_seed(0)
        for layer in layers:
            for part in copied.backbone.layers[layer].modules():
                if hasattr(part, 'reset_parameters'):
                    part.reset_parameters()
    return copied


def _accuracy(model: nn.Module, read: Callable) -> float:
    features, labels = image_features(model, read(), 'backbone')
    labels, number = numbered(labels)
    similarity = cosine_similarity(features, features).fill_diagonal_(-2)
    votes = nearest_votes(similarity, labels, number)
    return (votes.argmax(dim=1) == labels).double().mean().item()


def numbered(labels: list[int]) -> tuple[Tensor, int]:
    """Number the classes of images anew.

    Returns:
        tuple[Tensor, int]: Labels from 0, and the number of classes.

    Raises:
        ValueError: If there are no labels.
    """
    if not labels:
        raise ValueError('accuracy needs labels: choose a labeled --split')
    classes, found = torch.tensor(labels).unique(return_inverse=True)
    return found, len(classes)


def pca(model: nn.Module, read: Read) -> dict[str, Tensor]:
    """Measure how much of the variance the first principal components hold.

    Of final features of unit length. Touvron's thesis, section 2.6: it bends
    where there are as many as classes were learned.

    Returns:
        dict[str, Tensor]: ``energy``, (min(N, C) + 1, 1), from 0 to 1.
    """
    unit = F.normalize(image_features(model, read())[0].double(), dim=1)
    squares = torch.linalg.svdvals(unit - unit.mean(dim=0)).square()
    share = squares.cumsum(dim=0) / squares.sum()
    return dict(energy=F.pad(share, (1, 0))[:, None])
