# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Heads over several layers: CLA, layer fusion, and with references."""

import pytest
import torch
import torch.nn.functional as F
from mmpretrain.structures import DataSample
from small_models import build, classifier, images, vit
from torch import nn

from mmclca.models import last_linear, set_last_linear
from mmclca.models.heads import CLAHead, get_feature_subsets, nearest_of_others

C, G, CLASSES = 16, 4, 5
SIZES = dict(num_classes=CLASSES, in_channels=C)
LINEAR = dict(SIZES, type='LinearClsHead')
FUSION = dict(SIZES, type='mmclca.LayerFusionHead', num_layers=G)


def cla_head(**options):
    return build(dict(SIZES, type='mmclca.CLAHead', num_layers=G, **options))


@pytest.fixture
def feats():
    """CLS tokens of G layers, each (3, C)."""
    return tuple(torch.randn(3, C) for _ in range(G))


def test_cla_head_statistics_cover_batch_and_layers(feats):
    cla = cla_head().train()
    cla(feats)
    tokens = torch.cat(feats)
    norm = cla.layers[0]
    assert torch.allclose(norm.running_mean, 0.1 * tokens.mean(0))
    assert torch.allclose(norm.running_var, 0.9 + 0.1 * tokens.var(0))


def test_cla_head_has_parameter_counts_of_the_paper():
    cla = CLAHead(num_classes=80, in_channels=768, num_layers=4)
    counts = [sum(p.numel() for p in m.parameters()) for m in cla.layers]
    assert counts == [1536, 7680, 3072, 0, 122960]
    assert cla.layers[1].weight.shape == (1536, 1, 4)
    assert cla_head(multiplier=3).layers[1].weight.shape == (3 * C, 1, G)


def test_cla_head_raises_if_number_of_layers_differs(feats):
    for wrong in (feats[:-1], feats + feats[:1]):
        with pytest.raises(RuntimeError):
            cla_head().eval()(wrong)


def test_cla_head_ignores_distillation_token(feats):
    head = cla_head().eval()
    both = tuple(torch.stack((x, 9 * x), dim=1) for x in feats)
    assert torch.equal(head(both), head(feats))


@pytest.mark.parametrize('topk', [3, (1, 2)])
def test_head_reports_accuracy_for_each_k(feats, topk):
    samples = [DataSample().set_gt_label(label) for label in (4, 0, 2)]
    losses = cla_head(cal_acc=True, topk=topk).loss(feats, samples)
    ks = (topk,) if isinstance(topk, int) else topk
    assert losses.keys() == {'loss', *(f'accuracy_top-{k}' for k in ks)}


def normalized(x):
    return nn.LayerNorm(x.shape[-1], elementwise_affine=False)(x)


def test_layer_fusion_head_normalizes_parts_and_averages_maps():
    feats = tuple(100**i * torch.randn(2, 2 * C) for i in range(G))
    made = build(dict(FUSION, num_parts=2)).pre_logits(feats)
    parts = [normalized(x) for feat in feats for x in feat.chunk(2, dim=-1)]
    torch.testing.assert_close(made, torch.cat(parts, dim=-1))
    feats = (torch.randn(2, 4, 3, 3), torch.randn(2, 6))
    head = build(dict(FUSION, num_layers=2, in_channels=[4, 6]))
    parts = normalized(feats[0].mean((2, 3))), normalized(feats[1])
    made = head.pre_logits(feats)
    torch.testing.assert_close(made, torch.cat(parts, dim=-1))


def model(head=None, cla=False):
    """A classifier over four layers, or over the last one."""
    options = dict(reduce_at=(3, 6, 9)) if cla else {}
    config = classifier(vit(**options), cla)
    return build(dict(config, head=head or config['head'])).eval()


@pytest.mark.parametrize(
    'head, cla',
    [
        (None, True),
        (FUSION, True),
        (LINEAR, False),
        (dict(LINEAR, type='VisionTransformerClsHead'), False),
    ],
)
def test_set_last_linear_maps_features_to_scores(head, cla):
    net, x = model(head, cla), images()
    features = net.extract_feat(x, stage='pre_logits')
    weight = torch.randn(CLASSES, features.shape[1])
    bias = torch.randn(CLASSES)
    set_last_linear(net.head, weight, bias)
    torch.testing.assert_close(net(x), features @ weight.T + bias)
    with pytest.raises(ValueError, match=r'\(5, 3\)'):
        set_last_linear(net.head, weight[:, :3], bias)
    with pytest.raises(ValueError, match='Identity'):
        last_linear(nn.Identity())


@torch.no_grad()
@pytest.mark.parametrize(
    'head, kind, cla',
    [
        (LINEAR, 'NearestLinearHead', False),
        (FUSION, 'NearestFusionHead', True),
    ],
)
def test_nearest_equals_loop_over_references(head, kind, cla):
    plain = model(head, cla)
    near = model(dict(head, type=f'mmclca.{kind}', num_references=7), cla)
    x = images(3)
    features = plain.extract_feat(x, stage='pre_logits')
    references = torch.randn(7, features.shape[1])
    near.head.references.copy_(F.normalize(references, dim=1))
    plain.load_state_dict(near.state_dict(), strict=False)
    torch.testing.assert_close(near(x), plain(x))
    features = plain.extract_feat(x, stage='pre_logits')
    found = near.head.nearest(near.extract_feat(x))
    cosines = F.cosine_similarity(features[:, None], references, dim=-1)
    torch.testing.assert_close(found, cosines.amax(dim=1))


def test_nearest_of_others_equals_loop():
    features, splits = torch.randn(5, 3), [([0, 1], [3]), ([2, 4, 3], [0, 1])]
    found = nearest_of_others(features, splits)
    for row, (others, own) in zip(found, splits, strict=True):
        assert row.isnan().sum() == 5 - len(own)
        for i in own:
            cosines = F.cosine_similarity(features[others], features[i][None])
            assert float(row[i]) == pytest.approx(float(cosines.max()))


def test_probes_read_no_late_averages_or_late_class_tokens_only():
    head = build(dict(FUSION, num_parts=3))
    most, late = (
        {(int(i) // C // 3, int(i) // C % 3) for i in columns}
        for columns in get_feature_subsets(head)
    )
    cls, average, std = range(3)
    assert most == {
        *((layer, part) for layer in range(3) for part in range(3)),
        (3, cls),
    }
    assert late == {(2, cls), (3, cls)}
    assert get_feature_subsets(build(FUSION)) is None
    assert get_feature_subsets(build(LINEAR)) is None
