# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import pytest
import torch

from mmclca.models.reduction.clustering import distances, dpc_knn, k_medoids

B, N, C = 3, 11, 4


def slow_distances(rows):
    return [[float((a - b).norm()) for b in rows] for a in rows]


def slow_dpc_knn(rows, num_clusters, num_neighbors):
    """Return the clusters for one image."""
    scale = math.sqrt(len(rows[0]))
    distance = [[d / scale for d in row] for row in slow_distances(rows)]
    tokens = range(len(rows))
    density = []
    for i in tokens:
        nearest = sorted(distance[i])[:num_neighbors]
        density.append(math.exp(-sum(d * d for d in nearest) / num_neighbors))
    score = []
    for i in tokens:
        denser = [distance[i][j] for j in tokens if density[j] > density[i]]
        farthest = max(max(row) for row in distance)
        score.append(density[i] * (min(denser) if denser else farthest))
    centers = sorted(tokens, key=lambda i: -score[i])[:num_clusters]
    label = []
    for i in tokens:
        if i in centers:
            label.append(centers.index(i))
        else:
            near = [distance[c][i] for c in centers]
            label.append(near.index(min(near)))
    return label


def test_distances_are_symmetric_with_zero_diagonal():
    x = torch.randn(2, 60, 8) + 10  # large rounding errors
    distance = distances(x)
    assert torch.equal(distance, distance.transpose(1, 2))
    assert not distance.diagonal(dim1=1, dim2=2).any()
    expected = (x.double()[:, :, None] - x.double()[:, None]).norm(dim=-1)
    assert torch.allclose(distance.double(), expected, atol=1e-2)


def test_dpc_knn_ignores_the_batch_if_densities_are_equal():
    """With two neighbors, mutually nearest tokens have equal densities."""
    y = torch.randn(8, 40, 16).double()
    together = dpc_knn(y, 10, 2, noise=0.0)
    alone = [dpc_knn(rows[None], 10, 2, noise=0.0) for rows in y]
    assert torch.equal(together, torch.cat(alone))


@pytest.mark.parametrize('num_clusters', [1, 5, N])
@pytest.mark.parametrize('num_neighbors', [3, N])
def test_dpc_knn_equals_loop(num_clusters, num_neighbors):
    y = torch.randn(B, N, C).double()
    label = dpc_knn(y, num_clusters, num_neighbors, noise=0.0)
    for row, rows in zip(label.tolist(), y, strict=True):
        assert row == slow_dpc_knn(rows, num_clusters, num_neighbors)


def test_dpc_knn_fills_all_clusters_if_tokens_are_equal():
    y = torch.ones(B, N, C)
    for label in dpc_knn(y, 3, 5, noise=0.0):
        assert set(label.tolist()) == {0, 1, 2}


def test_dpc_knn_noise_breaks_ties():
    y = torch.ones(1, N, C)
    y[:, ::2] = 2  # two places of equal density
    drawn = [dpc_knn(y, 2, 2, noise=1e-6) for _ in range(20)]
    assert any(not torch.equal(drawn[0], label) for label in drawn)
    same = [dpc_knn(y, 2, 2, noise=0.0) for _ in range(3)]
    assert all(torch.equal(same[0], label) for label in same)


def slow_k_medoids(rows, weight, num, iterations):
    """Return the medoids for one image, with distances summed over members."""
    distance = slow_distances(rows)
    tokens = range(len(rows))
    medoids = sorted(tokens, key=lambda i: -weight[i])[:num]
    for _ in range(iterations):
        members = [[m] for m in medoids]
        for i in tokens:
            if i not in medoids:
                near = [distance[m][i] for m in medoids]
                members[near.index(min(near))].append(i)
        medoids = [
            min(
                sorted(group),
                key=lambda i, g=group: sum(
                    weight[j] * distance[j][i] for j in g
                ),
            )
            for group in members
        ]
    return medoids


@pytest.mark.parametrize('num', [1, 4, N])
@pytest.mark.parametrize('iterations', [0, 1, 3])
def test_k_medoids_equal_loop(num, iterations):
    x, weight = torch.randn(9, N, C).double(), torch.rand(9, N).double()
    medoids = k_medoids(x, weight, num, iterations)
    for found, rows, weights in zip(medoids, x, weight, strict=True):
        expected = slow_k_medoids(rows, weights.tolist(), num, iterations)
        assert found.tolist() == expected


@pytest.mark.parametrize('weight', [torch.zeros, torch.rand])
def test_k_medoids_differ_if_tokens_are_equal(weight):
    index = k_medoids(torch.ones(B, N, C), weight(B, N), 4, iterations=3)
    for medoids in index.tolist():
        assert len({*range(N)} & {*medoids}) == 4


def test_clustering_uses_float32_without_gradients():
    x = torch.randn(B, N, C).bfloat16().requires_grad_()
    expected = dpc_knn(x.float(), 3, 3, noise=0.0)
    assert torch.equal(dpc_knn(x, 3, 3, noise=0.0), expected)
    weight = torch.rand(B, N)
    expected = k_medoids(x.float(), weight, 3, 3)
    assert torch.equal(k_medoids(x, weight, 3, 3), expected)
