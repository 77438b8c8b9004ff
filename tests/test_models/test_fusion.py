# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Models that classify by several layers."""

from copy import deepcopy

import pytest
import torch
import toy_backbones  # noqa: F401, registers them
from small_models import build, classifier, images, vit

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.releases import name_source
from mmclca.models import with_layer_fusion, with_reduction


def plain():
    return dict(
        classifier(dict(vit(), type='VisionTransformer')),
        type='ImageClassifier',
    )


def test_the_first_three_quarters_by_their_averages():
    before = plain()
    made = with_layer_fusion(deepcopy(before))
    net = build(made).eval()
    assert len(net.backbone.layers) == net.head.num_layers == 9
    assert net.head.num_classes == 5
    whole = build(classifier(vit())).eval()
    net.backbone.load_state_dict(whole.backbone.state_dict(), strict=False)
    x = images()
    tokens, _ = whole.backbone.embed(x)
    pairs = zip(whole.backbone.layers, net.backbone(x), strict=False)
    for layer, found in pairs:
        tokens = whole.backbone.run_layer(layer, tokens, None)
        torch.testing.assert_close(found, tokens.x[:, 1:].mean(dim=1))


def test_cls_and_average_side_by_side():
    made = with_layer_fusion(plain(), (2, 11), 'cls_average')
    net = build(made).eval()
    cls_only = build(with_layer_fusion(plain(), (2, 11), 'cls_token')).eval()
    cls_only.backbone.load_state_dict(net.backbone.state_dict())
    x = images()
    both, cls_tokens = net.backbone(x), cls_only.backbone(x)
    assert both[1].shape == (2, 32) and made['head']['num_parts'] == 2
    torch.testing.assert_close(both[1][:, :16], cls_tokens[1])


def test_reductions_after_the_last_layer_fall_away():
    reduced = with_reduction(plain(), 'EViT', (0.5, 0.6, 0.7), cache=True)
    made = with_layer_fusion(reduced, (0, 4, 8))['backbone']
    assert made['reduce_at'] == (3, 6)
    assert made['reducer']['keep_rate'] == (0.5, 0.6)
    assert build(with_layer_fusion(reduced))(images()).shape == (2, 5)
    full = with_layer_fusion(reduced, (1, 2))['backbone']
    assert full['reducer'] is None and full['cache'] is None


def test_weights_of_the_whole_network_load():
    whole = build(classifier(vit()))
    weights = name_source(whole.state_dict(), 'whole.pth')
    cut = build(with_layer_fusion(plain()))
    report = []
    weights._metadata['']['source'].answer = report.append
    cut.load_state_dict(weights, strict=False)
    assert not [name for name in report[0].new if 'backbone' in name]
    assert any('backbone.layers.11' in name for name in report[0].unused)
    shallow = build(classifier(vit(num_layers=9)))
    with pytest.raises(CheckpointError, match='has no place'):
        shallow.load_state_dict(
            name_source(whole.state_dict(), 'whole.pth'), strict=False
        )


def test_a_backbone_that_gives_cls_only():
    toy = classifier(dict(type='mmclca.ToyReducible', channels=16))
    made = with_layer_fusion(toy, (0, 1), 'cls_token')
    assert build(made)(images()).shape == (2, 5)
    with pytest.raises(ValueError, match='gives CLS only'):
        with_layer_fusion(toy, (0, 1))


@pytest.mark.parametrize(
    ('wrong', 'said'),
    [
        (dict(layers=(2, 1)), 'ascending'),
        (dict(layers=(12,)), 'within 0 to 11'),
        (dict(layers=()), 'ascending'),
        (dict(out_type='raw'), 'is not one of'),
    ],
)
def test_what_cannot_be_read(wrong, said):
    with pytest.raises(ValueError, match=said):
        with_layer_fusion(plain(), **wrong)


@pytest.mark.parametrize('depth', [0, 13, 2.5])
def test_depths_that_are_not_there(depth):
    with pytest.raises(ValueError, match='depth=.* from 1 to 12'):
        build(vit(depth=depth))


def test_cls_and_average_need_cls():
    with pytest.raises(ValueError, match='needs a CLS token'):
        build(vit(out_type='cls_average', with_cls_token=False))
