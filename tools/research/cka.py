# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Similarity between layer features: centered kernel alignment (CKA)."""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from mmclca.datasets.batches import Batch
from mmclca.errors import Error
from mmclca.models.recording import as_reducible, layer_outputs
from mmclca.models.reduction.tokens import Tokens

MIN_IMAGES = 4  # required by the unbiased HSIC estimate


def _mean(x: Tensor, used: Tensor, num_prefix: int) -> Tensor:
    """Average the used patch tokens, each with equal weight, (B, C)."""
    patches, used = x[:, num_prefix:], used[:, num_prefix:]
    return (patches * used).sum(dim=1) / used.sum(dim=1).clamp(min=1)


FEATURES = dict(
    cls=lambda x, used, num_prefix: x[:, 0],
    mean=_mean,
    all=lambda x, used, num_prefix: (x * used).flatten(1),
)


def feature_reader(model: nn.Module, feature: str) -> Callable:
    """Return a layer-feature reader for :func:`.layer_outputs`.

    ``feature`` is 'cls', the CLS token; 'mean', the mean over patch tokens; or
    'all', all tokens in one vector. Ignored tokens are left out of the mean,
    and are zero in the vector. Raises an Error if the backbone does not
    support recording, or lacks the CLS token for 'cls'.
    """
    backbone = as_reducible(model.backbone)
    if feature == 'cls' and not backbone.ranks_by_cls:
        raise Error(
            f"feature='cls': {backbone.why_no_cls}; use 'mean' or 'all'"
        )

    def read(x: Tensor, left: Tokens) -> Tensor:
        used = (left.weights > 0).to(x).unsqueeze(-1)
        return FEATURES[feature](x, used, left.num_prefix)

    return read


@torch.no_grad()
def gram_matrices(
    model: nn.Module, batches: Iterable[Batch], feature: str = 'cls'
) -> list[Tensor]:
    """Compute Gram matrices of layer features per batch, float64 (L, B, B).

    For ``feature``, see :func:`feature_reader`.
    """
    read = feature_reader(model, feature)

    def gram(x: Tensor, left: Tokens) -> Tensor:
        x = read(x, left).double()  # for an exact product
        return x @ x.T

    look = layer_outputs(model, gram)
    return [torch.stack(look(batch.images)) for batch in batches]


def hsic(first: Tensor, second: Tensor) -> Tensor:
    """Unbiased Hilbert-Schmidt independence criterion for layer pairs, (L, M).

    `Feature Selection via Dependence Maximization`, theorem 2. The Gram
    matrices (L, B, B) and (M, B, B) need the same images; fewer than 4 images
    raise an Error.
    """
    n = first.size(-1)
    if n < MIN_IMAGES:
        raise Error(f'CKA needs {MIN_IMAGES} images per batch, found {n}')
    off_diagonal = 1 - torch.eye(n).to(first)
    first, second = first * off_diagonal, second * off_diagonal
    trace = first.flatten(1) @ second.flatten(1).T
    sums = first.sum((1, 2))[:, None] * second.sum((1, 2))
    rows = first.sum(2) @ second.sum(2).T
    total = trace + sums / ((n - 1) * (n - 2)) - 2 * rows / (n - 2)
    return total / (n * (n - 3))


def cka(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """Linear centered kernel alignment (CKA) for layer pairs, (L, M).

    `Do Wide and Deep Networks Learn the Same Things?`, section 3: unbiased
    HSIC is averaged over batches, so the value does not depend on the batch
    size. The Gram matrices for both models come from :func:`gram_matrices` on
    the same batches. 1 means equal up to rotation and scale, about 0 means
    unrelated.
    """
    pairs = list(zip(first, second, strict=True))
    across = sum(hsic(a, b) for a, b in pairs)
    within_first = sum(hsic(a, a).diagonal() for a, _ in pairs)
    within_second = sum(hsic(b, b).diagonal() for _, b in pairs)
    return across / (within_first[:, None] * within_second).sqrt()
