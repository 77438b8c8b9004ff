# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F
from small_models import build, classifier, images, vit

from mmclca.models.heads import nearest_of_others

CHANNELS, CLASSES, NUMBER = 16, 5, 7
SETTINGS = dict(num_classes=CLASSES, in_channels=CHANNELS)
HEADS = {
    'NearestLinearHead': dict(SETTINGS, type='LinearClsHead'),
    'NearestFusionHead': dict(
        SETTINGS, type='mmclca.LayerFusionHead', num_layers=2
    ),
}


@torch.no_grad()
@pytest.mark.parametrize('kind', HEADS)
def test_nearest_equals_loop_over_references(kind):
    plain = classifier(vit(out_indices=(0, 1)))
    plain['head'] = HEADS[kind]
    near = dict(HEADS[kind], type=f'mmclca.{kind}', num_references=NUMBER)
    model, before = build(dict(plain, head=near)).eval(), build(plain).eval()
    features = model.extract_feat(images(), stage='pre_logits')
    references = torch.randn(NUMBER, features.shape[1])
    model.head.references.copy_(F.normalize(references, dim=1))
    before.load_state_dict(model.state_dict(), strict=False)
    x = images(3)
    torch.testing.assert_close(model(x), before(x))
    features = before.extract_feat(x, stage='pre_logits')
    found = model.head.nearest(model.extract_feat(x))
    for feature, cosine in zip(features, found, strict=True):
        products = [
            float(feature @ one / (feature.norm() * one.norm()))
            for one in references
        ]
        assert float(cosine) == pytest.approx(max(products), abs=1e-5)


def test_nearest_of_others_equals_loop():
    features, splits = torch.randn(5, 3), [([0, 1], [3]), ([2, 4, 3], [0, 1])]
    found = nearest_of_others(features, splits)
    for row, (others, own) in zip(found, splits, strict=True):
        assert row.isnan().sum() == 5 - len(own)
        for i in own:
            cosines = F.cosine_similarity(features[others], features[i][None])
            assert float(row[i]) == pytest.approx(float(cosines.max()))
