# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from torch.nn.functional import layer_norm

from mmclca.models import PatchMerger
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Kept

B, N, C = 2, 7, 8


def test_patch_merger_averages_normalized_tokens():
    merger = PatchMerger(
        0.5, embed_dims=C, num_patches=N, num_stages=1
    ).double()
    merging = merger.stages[0]
    torch.nn.init.normal_(merging.norm.weight)
    torch.nn.init.normal_(merging.norm.bias)
    tokens = Tokens(torch.randn(B, 1 + N, C).double(), num_patches=N)
    merged = merger.before(tokens, 0)
    assert merging.queries.shape == (3, C)
    assert merged.x.shape == (B, 1 + 3, C)
    assert torch.equal(merged.x[:, 0], tokens.x[:, 0])
    for b in range(B):
        y = [
            layer_norm(row, (C,), merging.norm.weight, merging.norm.bias)
            for row in tokens.x[b, 1:]
        ]
        for m, query in enumerate(merging.queries):
            parts = [(query @ row).exp() for row in y]
            mean = sum(p * row for p, row in zip(parts, y, strict=True))
            assert torch.allclose(merged.x[b, 1 + m], mean / sum(parts))
    assert [type(record) for record in merged.trace] == [Kept]
    mix = merged.trace[0].mix
    assert torch.allclose(mix.sum(-1), torch.ones(B, 3).double())
    assert not mix[:, :, 0].any()


def test_patch_merger_has_one_query_per_token():
    merger = PatchMerger(0.5, embed_dims=C, num_patches=20, num_stages=3)
    assert [len(stage.queries) for stage in merger.stages] == [10, 5, 2]
    merger = PatchMerger(
        num_tokens=[9, 9, 1], embed_dims=C, num_patches=20, num_stages=3
    )
    assert [len(stage.queries) for stage in merger.stages] == [9, 9, 1]
