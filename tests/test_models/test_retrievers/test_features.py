# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch

from mmclca.models.retrievers import cosine_similarity


def test_cosine_of_angles():
    ours, theirs = torch.randn(3, 5), torch.randn(4, 5)
    expected = torch.cosine_similarity(ours[:, None], theirs[None], dim=-1)
    assert torch.allclose(cosine_similarity(ours, theirs), expected)
