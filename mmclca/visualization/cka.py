# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare the features of layers (CKA)."""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from mmclca.datasets.batches import Batch
from mmclca.models.recording import as_reducible, layer_outputs
from mmclca.models.reduction.tokens import Tokens

MIN_IMAGES = 4  # images, from which HSIC without bias can be estimated


def _mean(x: Tensor, counts: Tensor, num_prefix: int) -> Tensor:
    patches, counts = x[:, num_prefix:], counts[:, num_prefix:]
    return (patches * counts).sum(dim=1) / counts.sum(dim=1).clamp(min=1)


FEATURES = dict(
    cls=lambda x, counts, num_prefix: x[:, 0],
    mean=_mean,
    all=lambda x, counts, num_prefix: (x * counts).flatten(1),
)


def feature_reader(model: nn.Module, feature: str) -> Callable:
    """Return what :func:`.layer_outputs` reads of the layers of a model.

    Raises:
        ValueError: If the tokens of the backbone cannot be followed, or
            there is no CLS in its layers for 'cls'.
    """
    backbone = as_reducible(model.backbone)
    if feature == 'cls' and not backbone.num_prefix:
        raise ValueError(
            f"feature='cls': {backbone.why_no_cls}; use 'mean' or 'all'"
        )

    def read(x: Tensor, left: Tokens) -> Tensor:
        counts = (left.weights > 0).to(x).unsqueeze(-1)
        return FEATURES[feature](x, counts, left.num_prefix)

    return read


@torch.no_grad()
def gram_matrices(
    model: nn.Module, batches: Iterable[Batch], feature: str = 'cls'
) -> list[Tensor]:
    """Compute inner products of the images' features, layer by layer.

    Returns:
        list[Tensor]: (L, B, B) a batch, for L layers, float64.

    Raises:
        ValueError: See :func:`feature_reader`.
    """
    read = feature_reader(model, feature)

    def gram(x: Tensor, left: Tokens) -> Tensor:
        x = read(x, left).double()  # before a product that would lose digits
        return x @ x.T

    look = layer_outputs(model, gram)
    return [torch.stack(look(batch.images)) for batch in batches]


def hsic(first: Tensor, second: Tensor) -> Tensor:
    """Compute the Hilbert-Schmidt independence criterion, without bias.

    `Feature Selection via Dependence Maximization`, theorem 2.

    Args:
        first (Tensor): Gram matrices of some layers, (L, B, B).
        second (Tensor): Gram matrices of others, (M, B, B), same images.

    Returns:
        Tensor: For each pair of layers, (L, M).

    Raises:
        ValueError: If there are fewer than 4 images.
    """
    n = first.size(-1)
    if n < MIN_IMAGES:
        raise ValueError(f'CKA needs {MIN_IMAGES} images per batch, found {n}')
    off_diagonal = 1 - torch.eye(n).to(first)
    first, second = first * off_diagonal, second * off_diagonal
    trace = first.flatten(1) @ second.flatten(1).T
    sums = first.sum((1, 2))[:, None] * second.sum((1, 2))
    rows = first.sum(2) @ second.sum(2).T
    total = trace + sums / ((n - 1) * (n - 2)) - 2 * rows / (n - 2)
    return total / (n * (n - 3))


def cka(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """Compute linear centred kernel alignment (CKA) between layers.

    `Do Wide and Deep Networks Learn the Same Things?`, section 3: HSIC
    without bias is averaged over batches, so that the value does not depend
    on their size.

    Args:
        first (Sequence[Tensor]): Gram matrices of a model, (L, B, B) a batch,
            of :func:`gram_matrices`.
        second (Sequence[Tensor]): Those of the same or another model on the
            same batches, (M, B, B).

    Returns:
        Tensor: (L, M); 1 where features are alike up to rotation and scale,
        about 0 where they have nothing to do with each other.
    """
    pairs = list(zip(first, second, strict=True))
    across = sum(hsic(a, b) for a, b in pairs)
    one = sum(hsic(a, a).diagonal() for a, _ in pairs)
    two = sum(hsic(b, b).diagonal() for _, b in pairs)
    return across / (one[:, None] * two).sqrt()
