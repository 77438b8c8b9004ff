# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F
from decisions import decisions, disagreement, token_cosines
from small_models import build, classifier, images, vit


@pytest.fixture
def distilled():
    config = classifier(vit(3, dist_token=True))
    config['head']['type'] = 'mmclca.DistilledHead'
    return build(config).eval()


def test_decisions_are_predictions_per_token(distilled):
    batches = [images(4), images(3)]
    found = decisions('s', distilled, batches)
    x = torch.cat(batches)
    cls, dist = distilled.head.token_scores(distilled.forward_features(x)[0])
    assert list(found) == ['s, CLS', 's, distillation token', 's, both']
    for labels, scores in zip(
        found.values(), (cls, dist, distilled(x)), strict=True
    ):
        assert torch.equal(labels, scores.argmax(1))
    other = build(classifier(vit(2))).eval()
    (labels,) = decisions('t', other, batches).values()
    assert torch.equal(labels, other(x).argmax(1))


def test_disagreement_equals_share_of_images():
    one, two = torch.tensor([0, 1, 2, 3]), torch.tensor([0, 1, 3, 2])
    three = torch.tensor([9, 1, 2, 3])
    assert disagreement([one, two, three]).tolist() == [
        [0, 0.5, 0.25],
        [0.5, 0, 0.75],
        [0.25, 0.75, 0],
    ]


@torch.no_grad()
def test_token_cosines_equal_loop_over_layers(distilled):
    batches = [images(4), images(2)]
    found = token_cosines(distilled, batches)
    backbone = distilled.backbone
    backbone.out_type, backbone.final_norm = 'raw', False
    backbone.out_indices = [0, 1, 2]
    x = torch.cat(batches)
    start = backbone.embed(x)[0].features
    expected = [
        F.cosine_similarity(y[:, 0], y[:, 1]).mean()
        for y in (start, *backbone(x))
    ]
    assert torch.allclose(found, torch.stack(expected), atol=1e-6)
    with pytest.raises(ValueError, match='has no distillation token'):
        token_cosines(build(classifier(vit(2))), batches)
