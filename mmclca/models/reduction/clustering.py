# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Clustering of tokens, batched, without gradients."""

import torch
from torch import Tensor

from .attention import at_least_float32


def distances(x: Tensor) -> Tensor:
    """Measure distances between all tokens (B, N, C) of an image, (B, N, N).

    Exactly symmetric and 0 to itself, which rounding is not: else tokens
    that are alike would be told apart by the size of the batch.
    """
    x = at_least_float32(x)
    distance = torch.cdist(x, x)
    distance = torch.maximum(distance, distance.transpose(1, 2))
    itself = torch.eye(x.size(1), dtype=torch.bool, device=x.device)
    return distance.masked_fill(itself, 0.0)


@torch.no_grad()
def dpc_knn(y: Tensor, num_clusters: int, num_neighbors: int, noise: float):
    """Cluster by peaks of density among nearest neighbors (DPC-KNN).

    Du, Ding and Jia, 2016, as TCFormer uses it: centers are far from any
    denser token, and the others go to the nearest center.

    Args:
        y (Tensor): Tokens (B, N, C).
        num_clusters (int): Clusters to make.
        num_neighbors (int): Neighbors that the density looks at, the token
            itself among them.
        noise (float): Largest random number that breaks ties of density.

    Returns:
        Tensor: The cluster of each token, (B, N).
    """
    distance = distances(y) / y.size(-1) ** 0.5
    nearest = distance.topk(num_neighbors, dim=-1, largest=False).values
    density = (-nearest.square().mean(dim=-1)).exp()
    if noise:
        density = density + noise * torch.rand_like(density)
    denser = density.unsqueeze(1) > density.unsqueeze(2)
    farthest = distance.flatten(1).amax(dim=1)[:, None, None]
    separation = torch.where(denser, distance, farthest).amin(dim=-1)
    centers = (separation * density).topk(num_clusters, dim=-1).indices
    index = centers.unsqueeze(-1).expand(-1, -1, y.size(1))
    label = distance.gather(1, index).argmin(dim=1)
    own = torch.arange(num_clusters, device=y.device).expand_as(centers)
    return label.scatter(1, centers, own)


@torch.no_grad()
def k_medoids(x: Tensor, weight: Tensor, num: int, iterations: int) -> Tensor:
    """Find K medoids of tokens (B, N, C), from those of largest weight."""
    distance = distances(x)
    medoids = weight.topk(num, dim=1).indices
    for _ in range(iterations):
        label = _assign(distance, medoids)
        medoids = _update(distance, weight, label, num)
    return medoids


def _assign(distance: Tensor, medoids: Tensor) -> Tensor:
    """Find the cluster of each token, that of the nearest medoid.

    Args:
        distance (Tensor): Distances between tokens, (B, N, N).
        medoids (Tensor): Positions of the medoids, (B, K).

    Returns:
        Tensor: Clusters (B, N). A medoid is in its own, even where another
        one is equal to it, so that no cluster is empty.
    """
    index = medoids.unsqueeze(-1).expand(-1, -1, distance.size(2))
    label = distance.gather(1, index).argmin(dim=1)
    own = torch.arange(medoids.size(1), device=medoids.device)
    return label.scatter(1, medoids, own.expand_as(medoids))


def _update(distance: Tensor, weight: Tensor, label: Tensor, num: int):
    """Find the medoids, in each cluster the token nearest to all others.

    Args:
        distance (Tensor): Distances between tokens, (B, N, N).
        weight (Tensor): Weight of each token in the sums, (B, N).
        label (Tensor): The cluster of each token, (B, N).
        num (int): Clusters K.

    Returns:
        Tensor: Positions (B, K).
    """
    together = label.unsqueeze(1) == label.unsqueeze(2)
    cost = (distance * together * weight.unsqueeze(2)).sum(dim=1)  # (B, N)
    least = cost.new_full((cost.size(0), num), torch.inf)
    least = least.scatter_reduce(1, label, cost, 'amin')
    place = torch.arange(cost.size(1), device=cost.device).expand_as(label)
    last = cost.size(1)
    place = place.masked_fill(cost > least.gather(1, label), last)
    first = torch.full_like(least, last, dtype=torch.long)
    return first.scatter_reduce(1, label, place, 'amin')
