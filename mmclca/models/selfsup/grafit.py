# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Grafit: coarse labels as supervision for fine-grained features.

Touvron's thesis (2022), chapter 2; `Grafit: Learning fine-grained image
representations with coarse labels <https://arxiv.org/abs/2011.12982>`_. All
losses and scores normalize their embeddings.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.errors import Error
from mmclca.utils.messages import check_choice, check_integer

from ..retrievers import cosine_similarity, nearest_votes

RANKINGS = ('cosine', 'conditional', 'oracle')
REDUCTIONS = ('mean', 'counted', 'none')
MIN_PROBABILITY = 1e-6  # smallest class probability in log-odds


def knn_loss(
    embedding: Tensor,
    bank: Tensor,
    index: Tensor,
    labels: Tensor,
    sigma: float = 0.05,
    reduction: str = 'mean',
) -> Tensor:
    """Nearest-neighbor loss: negative log share of same-class neighbors.

    Equations 2.2 and 2.3 of the thesis, over the rows of a bank without the
    image itself. An image without another one of its class adds 0.

    Args:
        embedding (Tensor): Embeddings of the batch (B, D), with gradients.
        bank (Tensor): Embeddings of all training images (N, D).
        index (Tensor): Bank rows for the batch (B,).
        labels (Tensor): Coarse classes of the bank (N,).
        sigma (float): Temperature. Defaults to 0.05.
        reduction (str): 'mean' over the batch, 'counted' over images with
            another one of their class, or 'none'. Defaults to 'mean'.

    Returns:
        Tensor: The loss, (B,) for 'none'.

    Raises:
        Error: If the reduction is unknown or an index is outside.
    """
    check_choice(REDUCTIONS, reduction=reduction)
    check_index(index, len(bank))
    with torch.autocast(embedding.device.type, enabled=False):
        logits = cosine_similarity(embedding.to(bank), bank) / sigma
    rows, alone = index[:, None], is_alone(index, labels)
    least = torch.finfo(logits.dtype).min
    logits = logits.scatter(1, rows, least)
    other_classes = (labels != labels[rows]) & ~alone[:, None]
    same = logits.masked_fill(other_classes, least)
    each = logits.logsumexp(dim=1) - same.logsumexp(dim=1)
    if reduction == 'none':
        return each
    number = len(each) if reduction == 'mean' else (~alone).sum().clamp(min=1)
    return each.sum() / number


def is_alone(index: Tensor, labels: Tensor) -> Tensor:
    """Return whether rows (B,) of a bank are the only ones of their class."""
    return (labels == labels[index][:, None]).sum(dim=1) == 1


def check_index(index: Tensor, rows: int) -> None:
    """Raise if an index is not a row of the bank."""
    outside = index[(index < 0) | (index >= rows)].tolist()
    if outside:
        raise Error(
            f'index={outside[0]} is not a row of the bank (0 to {rows - 1}); '
            'add mmclca.BankHook'
        )


def instance_loss(
    online: Sequence[Tensor], target: Sequence[Tensor]
) -> Tensor:
    """Instance loss: negative mean cosine similarity between views.

    Equation 2.1 of the thesis, averaged over ordered pairs of different views
    and over the batch.

    Args:
        online (Sequence[Tensor]): Predictor outputs for V views, (B, D) each.
        target (Sequence[Tensor]): Target-network outputs for V views, without
            gradients.

    Returns:
        Tensor: The loss, in -1 to 1.

    Raises:
        Error: If there is only one view.
    """
    views = len(online)
    check_integer(minimum=2, views=views)
    first = F.normalize(torch.stack([*online]), dim=-1)
    second = F.normalize(torch.stack([*target]), dim=-1).detach()
    pairs = (first.sum(dim=0) * second.sum(dim=0)).sum(dim=-1)
    pairs = pairs - (first * second).sum(dim=(0, 2))  # without i = j
    return -pairs.mean() / (views * (views - 1))


def update_bank(bank: Tensor, embedding: Tensor, index: Tensor) -> Tensor:
    """Move rows of a bank halfway to new embeddings, and normalize them.

    Thesis, section 2.3; the second normalization is that of SNCA.

    Args:
        bank (Tensor): Embeddings (N, D).
        embedding (Tensor): New embeddings (B, D).
        index (Tensor): Rows to update (B,).

    Returns:
        Tensor: The new bank (N, D), with unit-length rows.

    Raises:
        Error: If an index is outside.
    """
    check_index(index, len(bank))
    bank = F.normalize(bank, dim=1)
    rows = (bank[index] + F.normalize(embedding.to(bank), dim=1)) / 2
    bank[index] = F.normalize(rows, dim=1)
    return bank


def knn_scores(
    queries: Tensor,
    bank: Tensor,
    labels: Tensor,
    k: int,
    sigma: float,
    num_classes: int,
) -> Tensor:
    """Classify images by the votes of their k nearest rows of a bank.

    Equation 2.6 of the thesis.

    Args:
        queries (Tensor): Embeddings (Q, D).
        bank (Tensor): Embeddings (N, D).
        labels (Tensor): Classes of the bank (N,), coarse or fine.
        k (int): Voting neighbors.
        sigma (float): Temperature for their cosine similarities.
        num_classes (int): Number of classes.

    Returns:
        Tensor: Scores (Q, num_classes); each row sums to 1.

    Raises:
        Error: If k is not an integer from 1 to N.
    """
    check_integer(k=k, maximum=len(bank))
    similarity = cosine_similarity(queries, bank)
    return nearest_votes(similarity, labels, num_classes, k, sigma)


def ranking_scores(
    queries: Tensor,
    gallery: Tensor,
    gallery_coarse: Tensor,
    ranking: str,
    sigma: float = 0.05,
    query_coarse: Tensor | None = None,
) -> Tensor:
    """Score a gallery for category-level retrieval; higher ranks first.

    Args:
        queries (Tensor): Embeddings (Q, D).
        gallery (Tensor): Embeddings (N, D).
        gallery_coarse (Tensor): Coarse gallery classes (N,).
        ranking (str): See :func:`ranked_similarity`.
        sigma (float): Temperature for the vote. Defaults to 0.05.
        query_coarse (Tensor, optional): Coarse query classes (Q,), for
            'oracle'. Defaults to None.

    Returns:
        Tensor: Scores (Q, N).

    Raises:
        Error: See :func:`ranked_similarity`.
    """
    return ranked_similarity(
        cosine_similarity(queries, gallery),
        gallery_coarse,
        ranking,
        sigma,
        query_coarse,
    )


def ranked_similarity(
    similarity: Tensor,
    gallery_coarse: Tensor,
    ranking: str,
    sigma: float = 0.05,
    query_coarse: Tensor | None = None,
) -> Tensor:
    """Compute ranking scores from cosine similarities, keeping -inf.

    Args:
        similarity (Tensor): Cosine similarities (Q, N).
        gallery_coarse (Tensor): Coarse gallery classes (N,).
        ranking (str): 'cosine'; 'conditional', which adds the log-odds of the
            coarse class in a vote of the whole gallery (equation 2.5 of the
            thesis); 'oracle', which ranks the coarse class of the query first.
        sigma (float): Temperature for the vote. Defaults to 0.05.
        query_coarse (Tensor, optional): Coarse query classes (Q,), for
            'oracle'. Defaults to None.

    Raises:
        Error: If the ranking is unknown, or 'oracle' lacks a
            ``query_coarse``.
    """
    check_choice(RANKINGS, ranking=ranking)
    if ranking == 'cosine':
        return similarity
    if ranking == 'conditional':
        votes = nearest_votes(
            similarity,
            gallery_coarse,
            num_classes=int(gallery_coarse.max()) + 1,
            k=None,
            temperature=sigma,
        )
        odds = votes.logit(eps=MIN_PROBABILITY)
        return odds[:, gallery_coarse].add_(similarity)
    if query_coarse is None:
        raise Error(
            "ranking='oracle' needs coarse classes of the queries; set "
            "query_coarse=, or ranking='conditional'"
        )
    other = query_coarse[:, None] != gallery_coarse
    # sort by coarse class, then by cosine: cosines span only 2, and a small
    # offset loses no digits
    return similarity - 2.5 * other
