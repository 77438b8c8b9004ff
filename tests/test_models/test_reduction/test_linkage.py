# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from process_state import compiling
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from mmclca.models.reduction.linkage import LINKAGES, agglomerate

OF_PAIRS = dict(
    average=lambda pairs: sum(pairs) / len(pairs), complete=max, single=min
)


def join_one_by_one(rows, num_clusters, linkage):
    """Cluster one image from the distances of all pairs."""
    distance = (1 - rows @ rows.T).tolist()
    clusters = [[i] for i in range(len(rows))]

    def between(pair):
        a, b = (clusters[place] for place in pair)
        return OF_PAIRS[linkage]([distance[i][j] for i in a for j in b])

    while len(clusters) > num_clusters:
        places = range(len(clusters))
        a, b = min(((a, b) for b in places for a in range(b)), key=between)
        clusters[a] += clusters.pop(b)
    clusters.sort(key=min)
    owner = {i: n for n, members in enumerate(clusters) for i in members}
    return [owner[i] for i in range(len(rows))]


def metrics(batch, num_tokens):
    """Return unit-length tokens, some of them close to each other."""
    y = torch.randn(batch, num_tokens, 5) + torch.randn(batch, 1, 5)
    return F.normalize(y.double(), dim=-1)


@pytest.mark.parametrize('linkage', LINKAGES)
@pytest.mark.parametrize('num_tokens', [2, 15])
def test_agglomerate_equals_joins_one_by_one(num_tokens, linkage):
    metric = metrics(3, num_tokens)
    for num_clusters in range(1, num_tokens + 1):
        found = agglomerate(metric, num_clusters, linkage)
        for labels, rows in zip(found.tolist(), metric, strict=True):
            assert labels == join_one_by_one(rows, num_clusters, linkage)


def while_loop(condition, step, state):
    while condition(*state):
        state = step(*state)
    return state


@pytest.mark.parametrize('linkage', LINKAGES)
def test_compiled_clusters_equal_eager_ones(linkage, monkeypatch):
    """In float64; images end after different numbers of rounds."""
    # new in torch 2.8
    monkeypatch.setattr(torch, 'while_loop', while_loop, raising=False)
    metric = metrics(6, 40)
    for num_clusters in (1, 7, 20, 39, 40):
        expected = agglomerate(metric, num_clusters, linkage)
        with compiling():
            found = agglomerate(metric, num_clusters, linkage)
        assert torch.equal(found, expected)


@pytest.mark.parametrize('linkage', LINKAGES)
@pytest.mark.parametrize('compiled', [False, True])
def test_clusters_equal_cut_tree_of_scipy(linkage, compiled, monkeypatch):
    monkeypatch.setattr(torch, 'while_loop', while_loop, raising=False)
    for num_tokens in (3, 49, 98):
        metric = metrics(4, num_tokens)
        trees = [build_tree(rows, linkage) for rows in metric]
        for num_clusters in {1, 2, num_tokens // 4 + 1, num_tokens // 2 + 1}:
            with compiling() if compiled else nullcontext():
                labels = agglomerate(metric, num_clusters, linkage)
            for row, tree in zip(labels, trees, strict=True):
                cut = hierarchy.cut_tree(tree, num_clusters)[:, 0]
                expected = torch.from_numpy(cut)
                same = row[:, None] == row
                assert torch.equal(same, expected[:, None] == expected)


def build_tree(rows, linkage):
    distance = (1 - rows @ rows.T).clamp(min=0).fill_diagonal_(0)
    return hierarchy.linkage(
        squareform(distance.numpy(), checks=False), linkage
    )


@pytest.mark.parametrize('linkage', LINKAGES)
@pytest.mark.parametrize(
    'metric',
    [
        torch.full((2, 24, 4), torch.nan),
        torch.eye(4).repeat(2, 6, 1),
        F.normalize(torch.randn(2, 24, 3).round(), dim=-1),
    ],
)
def test_agglomerate_returns_all_clusters_if_tokens_tie(metric, linkage):
    for num_clusters in (1, 5, 24):
        found = agglomerate(metric, num_clusters, linkage)
        numbers = [sorted(set(row)) for row in found.tolist()]
        assert numbers == [list(range(num_clusters))] * 2
        alone = [
            agglomerate(one[None], num_clusters, linkage) for one in metric
        ]
        assert torch.equal(found, torch.cat(alone))


def test_single_linkage_respects_gaps_on_a_lattice():
    """Most distances between lattice points are equal."""
    points = torch.randint(2, (40, 15, 4)) - 0.5  # unit length
    for num_clusters in range(2, 8):
        found = agglomerate(points, num_clusters, 'single')
        for labels, rows in zip(found, points, strict=True):
            distance = 1 - rows @ rows.T
            same = labels[:, None] == labels
            gap = distance.masked_fill(same, 9).min()
            near = same & (distance <= gap)
            for _ in range(4):  # paths of short steps
                near = (near.float() @ near.float()) > 0
            assert torch.equal(near, same)
