# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Agglomerative clustering of tokens, batched, without gradients.

A tree stores the parent of each token and the distance of the join. Cutting
the tree gives the requested number of clusters.
"""

from functools import partial

import torch
from torch import Tensor

from .attention import at_least_float32

LINKAGES = ('average', 'complete', 'single')
FAR = 16.0  # more than any cosine distance
FEW = 64  # removed clusters are dropped only above this size


@torch.no_grad()
def agglomerate(metric: Tensor, num_clusters: int, linkage: str) -> Tensor:
    """Cluster unit-length tokens (B, N, D) by cosine distance, nearest first.

    The distance between two clusters is the 'average', largest ('complete') or
    smallest ('single') one between their tokens. Returns the cluster per
    token, (B, N), numbered by first members.
    """
    metric = at_least_float32(metric)
    distance = 1 - metric @ metric.transpose(1, 2)
    distance = _symmetric(distance.nan_to_num(2.0))  # NaN weights
    if linkage == 'single':
        return _cut(num_clusters, *_spanning_tree(distance))
    return _cut(num_clusters, *_tree(distance, num_clusters, linkage))


def _symmetric(distance: Tensor) -> Tensor:
    """Remove rounding: make (B, L, L) symmetric, with a far diagonal."""
    distance = torch.maximum(distance, distance.transpose(1, 2))
    itself = torch.eye(distance.size(1), device=distance.device)
    return torch.maximum(distance, FAR * itself)


def _tree(distance: Tensor, num_clusters: int, linkage: str):
    """Join all mutually nearest clusters, in rounds.

    With these linkages, no join brings clusters closer to others, so the order
    of the joins does not matter.
    """
    B, N, _ = distance.shape
    first = torch.arange(N, device=distance.device).repeat(B, 1)
    size = distance.new_ones(B, N)
    clusters = first, size, torch.zeros_like(first, dtype=torch.bool)
    tree = first.clone(), torch.full_like(size, FAR)
    state = distance, *distance.min(dim=-1), *clusters, *tree
    unfinished = partial(_unfinished, num_joins=N - num_clusters)
    join = partial(_join, linkage=linkage)
    if torch.compiler.is_compiling():
        state = torch.while_loop(unfinished, join, state)
    else:
        while unfinished(*state):
            state = join(*state)
    return state[-2:]


def _unfinished(distance, near, *others, num_joins: int) -> Tensor:
    """Return whether a later join may be among the lowest ones."""
    sure = others[-1] < near.amin(dim=1, keepdim=True)
    return (sure.sum(dim=1) < num_joins).any()


def _join(
    distance, near, partner, first, size, gone, parent, height, linkage: str
):
    """Join all mutually nearest clusters once and return the new state.

    The state per cluster, (B, L), is the distance ``near`` to its ``partner``,
    its ``first`` token, its ``size`` and whether it is ``gone``, joined to
    another one; ``distance`` is (B, L, L). The tree has a ``parent`` and a
    ``height`` per token, (B, N). L shrinks with the clusters, except in a
    compiled model.
    """
    place = torch.arange(near.size(1), device=near.device)
    mutual = partner.gather(1, partner) == place
    other = torch.where(mutual, partner, place)
    dies = other < place
    token = first.where(dies, 0)  # token 0 is always a root
    parent = parent.scatter(1, token, first.gather(1, other).where(dies, 0))
    height = height.scatter(1, token, near.where(dies, FAR))
    joined = size.gather(1, other).where(other > place, 0)
    size, gone, stay = size + joined, gone | dies, None
    share = joined / size
    if len(place) > FEW and not torch.compiler.is_compiling():
        stay = gone.to(torch.uint8).argsort(dim=1, stable=True)
        stay = stay[:, : int((~gone).sum(dim=1).max())]
        kept = (other, share, first, size, gone)
        other, share, first, size, gone = (x.gather(1, stay) for x in kept)
    for _ in range(2):  # rows, then columns by symmetry
        rows = _rows(distance, stay), _rows(distance, other)
        if linkage == 'average':
            distance = torch.lerp(*rows, share.unsqueeze(-1))
        else:
            distance = torch.maximum(*rows)
        distance = distance.transpose(1, 2).contiguous()
    distance = torch.maximum(distance, FAR * gone.unsqueeze(2))
    distance = _symmetric(distance)
    nearest = distance.min(dim=-1)
    # torch.while_loop cannot return its inputs
    return distance, *nearest, first.clone(), size, gone, parent, height


def _rows(distance: Tensor, index: Tensor | None) -> Tensor:
    """Return the rows at ``index`` (B, M) of (B, L, K), or all for None."""
    if index is None:
        return distance
    B, L, K = distance.shape
    start = torch.arange(0, B * L, L, device=index.device).unsqueeze(1)
    rows = distance.reshape(B * L, K)
    return rows.index_select(0, (start + index).flatten()).view(B, -1, K)


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
        near = none.scatter_reduce(1, label, distance.amin(dim=-1), 'amin')
        nearest = distance == near.gather(1, label).unsqueeze(-1)
        to = torch.where(nearest, label.unsqueeze(1), N - 1).amin(dim=-1)
        to = (0 * label + N - 1).scatter_reduce(1, label, to, 'amin')
        there = near.gather(1, to)
        joins = (there < near) | ((there == near) & (to < token))
        joins = joins & (near < FAR)
        parent = torch.where(joins, to, parent)
        height = torch.where(joins, near, height)
        rounds = rounds + number * joins
        label = _roots(torch.where(joins, to, token)).gather(1, label)
    return parent, height, rounds


def _roots(parent: Tensor) -> Tensor:
    """Follow the parents (B, N) of all tokens to the roots."""
    for _ in range((parent.size(1) - 1).bit_length()):
        parent = parent.gather(1, parent)
    return parent


def _cut(num_clusters: int, parent, height, rounds=None) -> Tensor:
    """Apply the lowest joins of a tree until ``num_clusters`` remain.

    Ties go to earlier ``rounds``, on which later ones depend.
    """
    N = parent.size(1)
    token = torch.arange(N, device=parent.device).expand_as(parent)
    order = token if rounds is None else rounds.argsort(dim=1, stable=True)
    lowest = height.gather(1, order).argsort(dim=1, stable=True)
    joins = order.gather(1, lowest)[:, : N - num_clusters]
    root = _roots(token.scatter(1, joins, parent.gather(1, joins)))
    first = torch.full_like(root, N).scatter_reduce(1, root, token, 'amin')
    first = first.gather(1, root)
    return ((first == token).cumsum(dim=1) - 1).gather(1, first)
