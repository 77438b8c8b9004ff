# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmpretrain.structures import DataSample
from small_models import CACHE, build, classifier, images, vit
from toy_reducers import Scored

from mmclca.registry import MODELS


@pytest.fixture
def samples():
    return [DataSample().set_gt_label(label) for label in (1, 0, 4)]


@pytest.fixture
def scored():
    """Config of a classifier whose reducer has a loss."""
    backbone = vit(
        num_layers=6,
        reducer=dict(type=Scored),
        reduce_at=(1, 3),
        cache=CACHE,
        pre_norm=True,
    )
    return classifier(backbone, cla=True)


def test_classifier_adds_loss_of_reducer(scored, samples):
    model = build(scored).train()
    x = images(3)
    losses = model(x, samples, mode='loss')
    assert losses.keys() == {'loss', 'loss_ratio'}
    feats, tokens = model.backbone.forward_tokens(x)
    assert torch.allclose(
        losses['loss_ratio'], 2 * tokens.features.square().mean(), rtol=1e-5
    )
    alone = model.head.loss(feats, samples)['loss']
    assert torch.allclose(losses['loss'], alone, rtol=1e-5)


def test_plain_classifier_is_refused_if_reducer_has_loss(scored, samples):
    scored['type'] = 'ImageClassifier'
    model = MODELS.build(scored)
    allowed = "Scored has a loss; .* type='mmclca.TokenReductionClassifier'"
    with pytest.raises(ValueError, match=allowed):
        model.train()(images(3), samples, mode='loss')
    assert len(model.eval()(images(3), samples, mode='predict')) == 3


def test_classifier_equals_mmpretrain(samples):
    reducer = dict(type='mmclca.EViT', keep_rate=0.5)
    config = classifier(vit(3, reducer=reducer, reduce_at=(1,)))
    ours = build(config)
    plain = MODELS.build(dict(config, type='ImageClassifier'))
    plain.load_state_dict(ours.state_dict())
    x = images(3)
    assert torch.equal(ours(x), plain(x))
    out, other = (m(x, samples, mode='loss') for m in (ours, plain))
    assert torch.equal(out['loss'], other['loss'])


def test_extract_feat_returns_each_stage():
    backbone = vit(
        3,
        reducer=dict(type='mmclca.EViT', keep_rate=0.5),
        reduce_at=(1,),
        out_type='featmap',
        out_indices=(0, 2),
    )
    model = build(
        classifier(backbone, neck=dict(type='GlobalAveragePooling'))
    ).eval()
    x = images()
    with torch.no_grad():
        maps = model.extract_feat(x, stage='backbone')
        pooled = model.extract_feat(x)
        last = model.extract_feat(x, stage='pre_logits')
        assert [tuple(m.shape) for m in maps] == [(2, 16, 4, 4)] * 2
        for feature, featmap in zip(pooled, maps, strict=True):
            assert torch.allclose(feature, featmap.mean((2, 3)), atol=1e-6)
        assert torch.equal(last, pooled[-1])
        assert torch.equal(model(x), model.head.fc(last))


def test_cla_head_accepts_layers_in_any_order():
    config = classifier(vit(4, reduce_at=(1, 2)), cla=True)
    config['backbone']['out_indices'] = [-1, 2, 1]
    assert MODELS.build(config)(images()).shape == (2, 5)
    assert config['backbone']['out_indices'] == [-1, 2, 1]
