# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A trained model with other methods and keep rates than in training."""

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmpretrain import get_model
from tiny_model import write_tiny
from tiny_run import CLASSES, write_run

from mmclca.apis import TokenReductionInferencer
from mmclca.evaluation.cost import count_config
from mmclca.models import with_reduction
from mmclca.page import Variants
from mmclca.page.variants import answer
from mmclca.visualization.painting import FUSED, KEPT, kinds

FREE = {'ATS', 'EViT', 'KMedoids', 'ToMe', 'TopK'}
THREE = dict(reduce_at=(0, 1, 2))
EVIT = dict(reducer=dict(type='mmclca.EViT', keep_rate=0.5), reduce_at=(0, 1))


def reducer(name, **settings):
    return dict(reducer=dict(type=f'mmclca.{name}', **settings), **THREE)


@pytest.fixture
def leaf():
    return np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8)


def variants(folder, **options):
    torch.manual_seed(0)
    return Variants(TokenReductionInferencer(write_tiny(folder, **options)))


@pytest.mark.parametrize(
    'name, fixed',
    [
        ('EViT', False),
        ('ToMe', False),
        ('DynamicViT', False),
        ('DPCKNN', False),
        ('SiT', True),
        ('PatchMerger', True),
    ],
)
def test_own_method_and_those_without_parameters(name, fixed, tmp_path):
    found = variants(tmp_path, **reducer(name, keep_rate=0.6))
    assert found.own == found.start.method == found.methods[0] == name
    assert found.start.keep_rate == 0.6
    assert set(found.methods) == FREE | {name}
    assert [found.is_fixed(one) for one in (name, 'ToMe')] == [fixed, False]
    for method in found.methods:
        backbone = found.config(method, 0.6)['backbone']
        assert backbone['reduce_at'] == (0, 1, 2)


def test_every_parameter_of_every_variant_is_a_trained_one(tmp_path):
    found = variants(tmp_path, **reducer('DynamicViT', keep_rate=0.6))
    trained = dict(found.trained.model.named_parameters())
    for name in found.methods:
        for key, used in found.at(name, 0.3).model.named_parameters():
            assert torch.equal(used, trained[key])
            same = used.data_ptr() == trained[key].data_ptr()
            assert same or key == 'backbone.pos_embed'  # fitted on load


def test_as_trained_it_answers_as_the_checkpoint(tmp_path, leaf):
    settings = reducer('EViT', keep_rate=(0.9, 0.5, 0.7))
    found = variants(tmp_path, **settings)
    assert found.start.keep_rate == 0.68  # their geometric mean
    (expected,) = found.trained([leaf], return_tokens=True)
    (result,) = found.at('EViT', 0.68)([leaf], return_tokens=True)
    assert result['tokens'] == expected['tokens']
    np.testing.assert_array_equal(
        result['pred_scores'], expected['pred_scores']
    )


@pytest.mark.parametrize('name', ['TopK', 'ATS', 'KMedoids', 'ToMe', 'EViT'])
def test_another_method_is_that_of_a_config_with_it(name, tmp_path, leaf):
    found = variants(tmp_path, **reducer('DynamicViT', keep_rate=0.6))
    cfg = Config.fromfile(tmp_path / 'tiny.py')
    cfg.model.backbone.reducer = dict(type=f'mmclca.{name}', keep_rate=0.4)
    # mmengine leaves what the file has and the model has not
    by_hand = TokenReductionInferencer(cfg, str(tmp_path / 'tiny.pth'))
    (expected,) = by_hand([leaf], return_tokens=True)
    (result,) = found.at(name, 0.4)([leaf], return_tokens=True)
    assert result['tokens'] == expected['tokens']
    np.testing.assert_allclose(
        result['pred_scores'], expected['pred_scores'], rtol=1e-5
    )


def test_number_of_tokens_gives_way_to_a_keep_rate(tmp_path, leaf):
    settings = reducer('ToMe', num_tokens=(12, 9, 8))
    found = variants(tmp_path, **settings)
    assert found.start.keep_rate == 0.79  # (8 / 16) ** (1 / 3)
    (expected,) = found.trained([leaf], return_tokens=True)
    (same,) = found.at('ToMe', 0.79)([leaf], return_tokens=True)
    (more,) = found.at('ToMe', 1.0)([leaf], return_tokens=True)
    assert same['tokens'] == expected['tokens']
    assert more['tokens'][-1] > same['tokens'][-1]


def test_model_without_reduction_gets_stages(tmp_path, leaf):
    plain = dict(reducer=None, reduce_at=(), cache=None)
    found = variants(tmp_path, **plain)
    assert set(found.methods) == FREE
    layers = found.config('TopK', 0.5)['backbone']['reduce_at']
    assert layers == (0, 1, 2)  # quarters of three layers
    (all_kept,) = found.at('TopK', 1.0)([leaf])
    (expected,) = found.trained([leaf])
    np.testing.assert_allclose(
        all_kept['pred_scores'], expected['pred_scores'], rtol=1e-5
    )


def test_plain_model_of_mmpretrain(tmp_path, leaf):
    config = write_run(tmp_path)
    cfg = Config.fromfile(config)
    for name in ('reducer', 'reduce_at', 'cache'):
        del cfg.model.backbone[name]
    cfg.model.backbone.type = 'VisionTransformer'
    model = get_model(cfg, pretrained=False)
    trained = TokenReductionInferencer(model, classes=CLASSES)
    found = Variants(trained)
    assert set(found.methods) == FREE
    model = found.at('EViT', 0.5).model
    assert model.backbone.reduce_at == (0, 1, 2)
    weight = trained.model.head.fc.weight
    assert model.head.fc.weight.data_ptr() == weight.data_ptr()
    (result,) = found.at('EViT', 0.5)([leaf], return_tokens=True)
    assert result['tokens'][-1] < 17


def test_what_was_not_trained_is_refused(tmp_path):
    found = variants(tmp_path, **reducer('SiT', keep_rate=0.6))
    with pytest.raises(ValueError, match="'DynamicViT' is not one of SiT"):
        found.at('DynamicViT', 0.6)
    with pytest.raises(ValueError, match='SiT was trained for keep rate 0.6'):
        found.at('SiT', 0.5)
    assert found.at('SiT', 0.6) is found.at('SiT', 0.6)  # built once


def test_few_variants_are_kept(tmp_path):
    found = Variants(TokenReductionInferencer(write_tiny(tmp_path)), most=1)
    first = found.at('TopK', 0.3)
    assert found.at('TopK', 0.3) is first
    found.at('TopK', 0.4)
    assert found.at('TopK', 0.3) is not first


def test_only_a_method_that_is_chosen_warns(tmp_path, caplog, leaf):
    logger = MMLogger.get_current_instance()
    logger.addHandler(caplog.handler)
    found = variants(tmp_path, **reducer('EViT', keep_rate=0.3))
    assert 'ToMe merges' not in caplog.text and not logger.disabled
    found.at('ToMe', 0.3)
    logger.removeHandler(caplog.handler)
    assert 'ToMe merges at most half' in caplog.text


def test_backbone_without_a_cls_token(tmp_path):
    plain = dict(reducer=None, reduce_at=(), cache=None)
    no_cls = dict(with_cls_token=False, out_type='avg_featmap')
    model = write_tiny(tmp_path, **plain, **no_cls)
    with pytest.raises(ValueError, match='with_cls_token=False is not'):
        Variants(TokenReductionInferencer(model))


@pytest.fixture(scope='module')
def evit(tmp_path_factory):
    folder = tmp_path_factory.mktemp('evit')
    return variants(folder, **EVIT)


def test_answer_is_that_of_the_inferencer(evit, leaf):
    model = evit.trained
    found = answer(model, model.prepare(leaf), topk=3)
    (expected,) = model([leaf], return_tokens=True)
    (best, score), *others = found.scores.items()
    assert (best, len(others)) == (expected['pred_class'], 2)
    assert score == pytest.approx(expected['pred_score'], abs=1e-5)
    assert found.cells[0] == best
    assert found.gmacs == expected['gmacs']
    image, stages = found.survivors.image, found.survivors.stages
    assert image.shape == (336, 336, 3)
    assert [len(s.weights) for s in stages] == expected['tokens'][:2]
    shown = {int(kind) for s in stages for kind in kinds(s.weights)}
    assert shown == {KEPT, FUSED}
    for stage, kept in zip(stages, expected['kept'], strict=True):
        assert stage.kept == pytest.approx((kept > 0.999).mean())
        same = (stage.picture == image).all(axis=2)
        share = same.reshape(4, 84, 4, 84).mean(axis=(1, 3))
        assert (share[kept > 0.999] == 1).all()
        assert (share[kept <= 0.999] < 0.5).all()


def test_cost_is_compared_with_the_model_without_reduction(evit, leaf):
    packed = evit.trained.prepare(leaf)
    here, plain = evit.costs('EViT', 0.5, packed, 0.5)
    assert here[:2] == ['EViT, keep rate 0.5', 0.5]
    bare = with_reduction(evit.trained.model._config.model)
    flops = count_config(bare).flops
    assert plain[1] == pytest.approx(flops / 1e9, rel=1e-2)
    assert 0 < here[2] < 5000 and 0 < plain[2] < 5000
