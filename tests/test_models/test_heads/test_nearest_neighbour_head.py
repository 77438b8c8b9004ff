# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
import torch.nn.functional as F

from mmclca.registry import MODELS


def test_votes_of_the_nearest():
    inner = dict(type='LinearClsHead', num_classes=3, in_channels=5)
    head = MODELS.build(
        dict(
            type='mmclca.NearestNeighbourHead',
            head=inner,
            num_images=7,
            in_channels=5,
            k=2,
            temperature=0.5,
        )
    )
    head.features.copy_(torch.randn(7, 5))
    head.labels.copy_(torch.tensor([0, 1, 2, 2, 1, 0, 0]))
    x = torch.randn(4, 5)
    found = head((x,))
    for feature, scores in zip(x, found, strict=True):
        cosines = F.cosine_similarity(feature, head.features, dim=-1)
        first, second = cosines.argsort(descending=True)[:2].tolist()
        share = torch.sigmoid((cosines[first] - cosines[second]) / 0.07)
        expected = torch.zeros(3)
        expected[head.labels[first]] += share / 0.5
        expected[head.labels[second]] += (1 - share) / 0.5
        assert torch.allclose(scores, expected, atol=1e-5)
    assert head.state_dict()['features'].shape == (7, 5)
