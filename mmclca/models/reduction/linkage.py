# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Agglomerative clustering of tokens, batched, without gradients.

A tree stores the parent of each token and the distance of the join. Cutting
the tree gives the requested number of clusters.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from .attention import at_least_float32
from .operators import stable_order
from .trace import row_starts, rows_at

LINKAGES = ('average', 'complete', 'single')
FAR = 16.0  # more than any cosine distance
STEPS = 4  # removals of joined clusters


@torch.no_grad()
def agglomerate(metric: Tensor, num_clusters: int, linkage: str) -> Tensor:
    """Cluster unit-length tokens (B, N, D) by cosine distance, nearest first.

    The distance between two clusters is the 'average', largest ('complete') or
    smallest ('single') one between their tokens. Returns the cluster per
    token, (B, N), numbered by first members. Raises a RuntimeError in
    ``torch.jit.trace``.
    """
    if torch.jit.is_tracing():
        raise RuntimeError(
            'ATC cannot be traced, as the number of its rounds depends on the '
            'image; use mmclca.export_onnx or torch.export.export'
        )
    metric = at_least_float32(metric)
    metric = metric.where(metric == metric, 0.0)  # NaN weights
    if linkage == 'single':
        parent, height, rounds = _spanning_tree(-_similarity(metric))
        return _cut(num_clusters, parent, height, rounds)
    # means of clusters have average distances, too; they make a compiled model
    # faster, in which clusters cannot be removed after each round
    means = linkage == 'average' and torch.compiler.is_compiling()
    x = metric if means else _similarity(metric)
    parent, height = _build_tree(x, num_clusters, linkage, means)
    return _cut(num_clusters, parent, height)


def _similarity(x: Tensor) -> Tensor:
    """Return the cosine similarity of tokens (B, L, D), (B, L, L)."""
    return _symmetric(at_least_float32(x @ x.transpose(1, 2)))


def _symmetric(x: Tensor) -> Tensor:
    """Remove rounding from (B, L, L), so that some pair can always join."""
    return torch.maximum(x, x.transpose(1, 2))


class Clusters(NamedTuple):
    """State of the clusters of each image, in rounds of joins.

    Args:
        x (Tensor): Means of the tokens (B, L, D), or similarities (B, L, L).
        size (Tensor): Tokens per cluster, (B, L).
        gone (Tensor): Penalty for a cluster that was joined to another one,
            otherwise 0, (B, L).
        root (Tensor): Index of the cluster that it was joined to, (B, L).
        similarity (Tensor): Similarity at which it was joined, (B, L).
        reach (Tensor): Largest similarity before the last joins, (B, 1).
    """

    x: Tensor
    size: Tensor
    gone: Tensor
    root: Tensor
    similarity: Tensor
    reach: Tensor


def _build_tree(
    x: Tensor, num_clusters: int, linkage: str, means: bool
) -> tuple[Tensor, Tensor]:
    """Join all mutually nearest clusters, in rounds.

    With these linkages, no join brings clusters closer to others, so the order
    of the joins does not matter. ``x`` are tokens (B, N, D) for ``means``, or
    similarities (B, N, N). Joined clusters are removed after some rounds;
    rounds end if the joins of least ``height`` are known. Returns parents and
    heights (B, N).
    """
    first = parent = _positions(x)
    N = x.size(1)
    gone = x.new_zeros(first.shape)
    size, height, reach = gone + 1, gone - FAR, gone[:, :1] + FAR
    steps = 1 if torch.compiler.is_compiling() else STEPS
    sizes = [
        round(N * (num_clusters / N) ** (step / steps))
        for step in range(1, steps + 1)
    ]
    for max_clusters in (*sizes, 0):
        start = row_starts(x)
        unfinished = partial(
            _is_unfinished,
            max_clusters=max_clusters,
            num_joins=N - num_clusters,
            removed=height,
        )
        join = partial(_join, linkage=linkage, means=means)
        clusters = Clusters(
            x, size, gone, _positions(x), torch.zeros_like(size) - FAR, reach
        )
        clusters = _repeat(clusters, unfinished, join)
        x, size, gone = clusters.x, clusters.size, clusters.gone
        reach = clusters.reach
        parent = parent.scatter(1, first, first.gather(1, clusters.root))
        height = height.scatter(1, first, clusters.similarity)
        if max_clusters:
            stay = stable_order((gone < 0).int())[:, :max_clusters]
            size, gone = size.gather(1, stay), gone.gather(1, stay)
            # token 0 is always a root
            first = first.gather(1, stay).where(gone == 0, 0)
            x = rows_at(x, start + stay)
            if not means:  # columns by symmetry
                x = rows_at(x.transpose(1, 2), start + stay)
    return parent, -height


def _repeat(
    clusters: Clusters,
    unfinished: Callable[[Clusters], Tensor],
    join: Callable[[Clusters], Clusters],
) -> Clusters:
    """Call ``join`` while clusters are ``unfinished``."""
    if torch.compiler.is_compiling():
        # the operator passes each tensor as an argument
        tensors = torch.while_loop(
            lambda *tensors: unfinished(Clusters(*tensors)),
            lambda *tensors: tuple(join(Clusters(*tensors))),
            tuple(clusters),
        )
        return Clusters(*tensors)
    while unfinished(clusters):
        clusters = join(clusters)
    return clusters


def _is_unfinished(
    clusters: Clusters, max_clusters: int, num_joins: int, removed: Tensor
) -> Tensor:
    """Return whether more than ``max_clusters`` are left in any image.

    For 0, return whether a later join may be among the lowest ones;
    ``removed`` are the similarities of joins of removed clusters.
    """
    if max_clusters:
        left = (clusters.gone == 0).sum(dim=1)
        return left.amax(dim=0) > max_clusters
    joins = torch.cat((removed, clusters.similarity), dim=1)
    final = joins > clusters.reach
    return final.sum(dim=1).amin(dim=0) < num_joins


def _join(clusters: Clusters, linkage: str, means: bool) -> Clusters:
    """Join all mutually nearest clusters once and return the new state."""
    x, gone = clusters.x, clusters.gone
    L = x.size(1)
    # computed here: from outside, an export may give it another length
    start = row_starts(x)
    position = torch.arange(L, device=x.device)
    itself = FAR * torch.eye(L, device=x.device)
    close = _similarity(x) if means else x
    nearest, partner = (close - itself + gone.unsqueeze(1)).max(dim=-1)
    reach = (nearest + gone).amax(dim=1, keepdim=True)
    mutual = partner.gather(1, partner) == position
    other = torch.where(mutual, partner, position)
    dies = other < position
    root = other.where(dies, clusters.root)
    similarity = nearest.where(dies, clusters.similarity)
    gone = torch.where(dies, -2 * FAR, gone)  # the last one pairs with itself
    joined = clusters.size.gather(1, other).where(other > position, 0)
    size = clusters.size + joined
    share = (joined / size).unsqueeze(-1)
    for _ in range(1 if means else 2):  # rows, then columns by symmetry
        rows = rows_at(x, start + other)
        if linkage == 'average':
            x = x + share * (rows - x)
        else:
            x = torch.minimum(x, rows)
        x = x if means else x.transpose(1, 2).contiguous()
    x = x if means else _symmetric(x)
    return Clusters(x, size, gone, root, similarity, reach)


def _positions(x: Tensor) -> Tensor:
    """Return the positions of the rows of (B, L, K), (B, L)."""
    return torch.arange(x.size(1), device=x.device).repeat(x.size(0), 1)


def _spanning_tree(distance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Join each component to its nearest one until one is left (Boruvka).

    Ties go to the lowest label, and only if it is lower or has a nearer
    neighbor, which prevents cycles. Returns parents, heights and the round of
    each join.
    """
    B, N, _ = distance.shape
    token = torch.arange(N, device=distance.device)
    parent = label = token.repeat(B, 1)
    height = none = distance.new_full((B, N), FAR)
    rounds = torch.zeros_like(parent)
    for number in range((N - 1).bit_length()):
        same = label.unsqueeze(1) == label.unsqueeze(2)
        distance = distance.masked_fill(same, FAR)
        least = none.scatter_reduce(1, label, distance.amin(dim=-1), 'amin')
        nearest = distance == least.gather(1, label).unsqueeze(-1)
        to = torch.where(nearest, label.unsqueeze(1), N - 1).amin(dim=-1)
        to = (0 * label + N - 1).scatter_reduce(1, label, to, 'amin')
        there = least.gather(1, to)
        joins = (there < least) | ((there == least) & (to < token))
        joins = joins & (least < FAR)
        parent = torch.where(joins, to, parent)
        height = torch.where(joins, least, height)
        rounds = rounds + number * joins
        label = _roots(torch.where(joins, to, token)).gather(1, label)
    return parent, height, rounds


def _roots(parent: Tensor) -> Tensor:
    """Follow the parents (B, N) of all tokens to the roots."""
    for _ in range((parent.size(1) - 1).bit_length()):
        parent = parent.gather(1, parent)
    return parent


def _cut(
    num_clusters: int,
    parent: Tensor,
    height: Tensor,
    rounds: Tensor | None = None,
) -> Tensor:
    """Apply the lowest joins of a tree until ``num_clusters`` remain.

    Ties go to earlier ``rounds``, on which later ones depend.
    """
    N = parent.size(1)
    token = torch.arange(N, device=parent.device).expand_as(parent)
    order = token if rounds is None else stable_order(rounds)
    lowest = stable_order(height.gather(1, order))
    joins = order.gather(1, lowest)[:, : N - num_clusters]
    root = _roots(token.scatter(1, joins, parent.gather(1, joins)))
    first = root
    if rounds is not None:  # else, roots are first members
        first = torch.full_like(root, N).scatter_reduce(1, root, token, 'amin')
        first = first.gather(1, root)
    return ((first == token).cumsum(dim=1) - 1).gather(1, first)
