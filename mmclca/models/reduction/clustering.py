# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Batched clustering of tokens, without gradients."""

import torch
from torch import Tensor

from .attention import at_least_float32
from .operators import euclidean


def distances(x: Tensor) -> Tensor:
    """Compute Euclidean distances between tokens (B, N, C), (B, N, N).

    Rounding is removed: the matrix is symmetric with a diagonal of 0.
    Otherwise equal tokens would differ depending on the batch size.
    """
    x = at_least_float32(x)
    distance = euclidean(x)
    distance = torch.maximum(distance, distance.transpose(1, 2))
    itself = torch.eye(x.size(1), dtype=torch.bool, device=x.device)
    return distance.masked_fill(itself, 0.0)


@torch.no_grad()
def dpc_knn(y: Tensor, num_clusters: int, num_neighbors: int, noise: float):
    """Cluster by density peaks over nearest neighbors (DPC-KNN).

    Du, Ding and Jia, 2016, as in TCFormer: centers are far from any denser
    token, and other tokens join the nearest center.

    Args:
        y (Tensor): Tokens (B, N, C).
        num_clusters (int): Clusters.
        num_neighbors (int): Neighbors that define the density, the token
            itself included.
        noise (float): Largest random number added to break ties of density.

    Returns:
        Tensor: Cluster per token, (B, N).
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
    return _assign(distance, centers)


@torch.no_grad()
def k_medoids(x: Tensor, weight: Tensor, num: int, iterations: int) -> Tensor:
    """Cluster by K-medoids, starting from the tokens with largest weights.

    Args:
        x (Tensor): Tokens (B, N, C).
        weight (Tensor): Weight of each token, also in the sum of distances
            that a medoid minimizes, (B, N).
        num (int): Clusters K.
        iterations (int): Updates of the medoids.

    Returns:
        Tensor: Positions of the medoids, (B, K).
    """
    distance = distances(x)
    medoids = weight.topk(num, dim=1).indices
    for _ in range(iterations):
        label = _assign(distance, medoids)
        medoids = _update(distance, weight, label, num)
    return medoids


def _assign(distance: Tensor, centers: Tensor) -> Tensor:
    """Return the cluster per token, (B, N), by the nearest center.

    A center stays in its cluster even if another one is equal, so that no
    cluster is empty.
    """
    index = centers.unsqueeze(-1).expand(-1, -1, distance.size(2))
    label = distance.gather(1, index).argmin(dim=1)
    clusters = torch.arange(centers.size(1), device=centers.device)
    return label.scatter(1, centers, clusters.expand_as(centers))


def _update(distance: Tensor, weight: Tensor, label: Tensor, num: int):
    """Return the medoid of each cluster, (B, K).

    This is the position of the token with the least weighted sum of distances
    to the cluster.
    """
    together = label.unsqueeze(1) == label.unsqueeze(2)
    cost = (distance * together * weight.unsqueeze(2)).sum(dim=1)  # (B, N)
    least = cost.new_full((cost.size(0), num), torch.inf)
    least = least.scatter_reduce(1, label, cost, 'amin')
    position = torch.arange(cost.size(1), device=cost.device).expand_as(label)
    last = cost.size(1)
    position = position.masked_fill(cost > least.gather(1, label), last)
    first = torch.full_like(least, last, dtype=torch.long)
    return first.scatter_reduce(1, label, position, 'amin')
