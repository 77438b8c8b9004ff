# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Variants of a trained model with other methods and keep rates."""

from copy import deepcopy

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
from mmclca.models import Variant, with_reduction
from mmclca.page import Variants, open_model
from mmclca.page.prediction import Prediction, classify, show_kept_patches
from mmclca.visualization.painting import FUSED, KEPT, kinds

FREE = {
    *('ATC', 'ATS', 'DiffRate', 'EViT', 'KMedoids', 'MCTF', 'PPT', 'PiToMe'),
    *('ToMe', 'TopK'),
}


def variants(folder, name, max_cached=8, reduce_at=(0, 1, 2), **settings):
    """Variants of a tiny model with a reducer."""
    torch.manual_seed(0)
    reducer = dict(type=f'mmclca.{name}', **settings)
    model = write_tiny(folder, reducer=reducer, reduce_at=reduce_at)
    return Variants(TokenReductionInferencer(model), max_cached)


@pytest.fixture(scope='module')
def learned(tmp_path_factory):
    """Variants of DynamicViT, which has parameters for any keep rate."""
    folder = tmp_path_factory.mktemp('learned')
    return variants(folder, 'DynamicViT', keep_rate=0.6)


@pytest.fixture(scope='module')
def fixed(tmp_path_factory):
    """Variants of SiT, which has parameters for one keep rate."""
    return variants(tmp_path_factory.mktemp('fixed'), 'SiT', 1, keep_rate=0.6)


@pytest.fixture(scope='module')
def evit(tmp_path_factory):
    folder = tmp_path_factory.mktemp('evit')
    return variants(folder, 'EViT', reduce_at=(0, 1), keep_rate=0.5)


@pytest.fixture
def leaf():
    return np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8)


def tokens_and_scores(inferencer, leaf):
    (found,) = inferencer([leaf], return_tokens=True)
    return found['tokens'], found['pred_scores']


def test_methods_are_the_trained_one_and_all_without_parameters(
    learned, fixed, evit
):
    for found, rate in ((learned, 0.6), (fixed, 0.6), (evit, 0.5)):
        name = type(found.backbone.reducer).__name__
        assert (
            found.trained_method
            == found.start.method
            == found.methods[0]
            == name
        )
        assert found.start.keep_rate == rate
        assert set(found.methods) == FREE | {name}
        assert found.has_fixed_rate(name) is (found is fixed)
        assert not found.has_fixed_rate('ATC')
    backbone = fixed.config(Variant('ATC', 0.6)).model.backbone
    assert [*backbone.reduce_at] == [0, 1, 2]


def test_variants_share_the_trained_parameters(learned):
    trained = dict(learned.trained.model.named_parameters())
    for name in learned.methods:
        for key, used in learned.at(
            Variant(name, 0.3)
        ).model.named_parameters():
            assert torch.equal(used, trained[key])
            same = used.data_ptr() == trained[key].data_ptr()
            assert same or key == 'backbone.pos_embed'  # resized on load


@pytest.mark.parametrize(
    'name, settings, rate',  # geometric mean of several rates
    [
        ('EViT', dict(keep_rate=(0.9, 0.5, 0.7)), 0.68),
        ('ToMe', dict(num_tokens=(12, 9, 8)), 0.79),
    ],
)
def test_trained_rate_gives_the_scores_of_the_checkpoint(
    tmp_path, leaf, name, settings, rate
):
    found = variants(tmp_path, name, **settings)
    assert found.start.keep_rate == rate
    tokens, scores = tokens_and_scores(found.trained, leaf)
    same, same_scores = tokens_and_scores(found.at(Variant(name, rate)), leaf)
    assert same == tokens
    np.testing.assert_array_equal(same_scores, scores)
    more, _ = tokens_and_scores(found.at(Variant(name, 1.0)), leaf)
    assert more[-1] > tokens[-1]


def test_another_method_equals_a_config_with_the_method(learned, leaf):
    trained = learned.trained.model
    for name in ('ATS', 'EViT'):
        cfg = deepcopy(trained._config)
        cfg.model.backbone.reducer = dict(type=f'mmclca.{name}', keep_rate=0.4)
        by_hand = get_model(cfg, pretrained=False)
        by_hand.load_state_dict(trained.state_dict(), strict=False)
        by_hand = TokenReductionInferencer(by_hand, classes=CLASSES)
        tokens, scores = tokens_and_scores(by_hand, leaf)
        same, same_scores = tokens_and_scores(
            learned.at(Variant(name, 0.4)), leaf
        )
        assert same == tokens
        np.testing.assert_allclose(same_scores, scores, rtol=1e-5)


def test_variants_support_a_plain_model_from_mmpretrain(tmp_path, leaf):
    cfg = Config.fromfile(write_run(tmp_path))
    for name in ('reducer', 'reduce_at', 'cache'):
        del cfg.model.backbone[name]
    cfg.model.backbone.type = 'VisionTransformer'
    model = get_model(cfg, pretrained=False)
    found = Variants(TokenReductionInferencer(model, classes=CLASSES))
    assert found.start.method is None and {*found.methods} - FREE == {'none'}
    (as_trained,) = found.at(Variant(None, 0.5))([leaf])
    reduced = found.at(Variant('EViT', 0.5))
    assert reduced.model.backbone.reduce_at == (0, 1, 2)
    weight = model.head.fc.weight
    assert reduced.model.head.fc.weight.data_ptr() == weight.data_ptr()
    assert tokens_and_scores(reduced, leaf)[0][-1] < 17
    (all_kept,) = found.at(Variant('TopK', 1.0))([leaf])
    (expected,) = found.trained([leaf])
    for one in (all_kept, as_trained):
        np.testing.assert_allclose(
            one['pred_scores'], expected['pred_scores'], rtol=1e-5
        )


def test_at_refuses_untrained_weights_and_caches_variants(fixed):
    for method, rate in (('DynamicViT', 0.6), ('SiT', 0.5)):
        with pytest.raises(RuntimeError, match='reducer.stages'):
            fixed.at(Variant(method, rate))
    assert fixed.at(Variant('SiT', 0.6)) is fixed.trained
    first = fixed.at(Variant('TopK', 0.4))
    assert fixed.at(Variant('TopK', 0.4)) is first
    fixed.at(Variant('TopK', 0.6))  # replaces the only cached variant
    assert fixed.at(Variant('TopK', 0.4)) is not first


def test_only_a_selected_method_logs_warnings(evit, caplog):
    logger = MMLogger.get_current_instance()
    before = logger.level
    logger.setLevel('WARNING')  # other tests may silence it
    logger.addHandler(caplog.handler)
    assert evit._fits(Variant('ToMe', 0.3))
    assert 'ToMe merges' not in caplog.text and not logger.disabled
    evit.at(Variant('ToMe', 0.3))
    logger.removeHandler(caplog.handler)
    logger.setLevel(before)
    assert 'ToMe merges at most half' in caplog.text


def test_model_without_cls_token_cannot_reduce(tmp_path):
    plain = dict(reducer=None, reduce_at=(), cache=None)
    no_cls = dict(with_cls_token=False, out_type='avg_featmap')
    write_tiny(tmp_path, **plain, **no_cls)
    assert not open_model(tmp_path / 'tiny.pth').can_reduce


def test_patches_and_scores_equal_the_inferencer(evit, leaf):
    model = evit.trained
    packed = model.prepare(leaf)
    prediction = classify(model, packed)
    (expected,) = model([leaf], return_tokens=True)
    (best, score), *others = prediction.scores.items()
    assert (best, len(others)) == (expected['pred_class'], 3)
    assert score == pytest.approx(expected['pred_score'], abs=1e-5)
    assert prediction.gmacs == expected['gmacs']
    patches = show_kept_patches(model, packed)
    assert patches.image.shape == (336, 336, 3)
    assert [len(s.weights) for s in patches.stages] == expected['tokens'][:2]
    shown = {int(kind) for s in patches.stages for kind in kinds(s.weights)}
    assert shown == {KEPT, FUSED}


def test_costs_compare_with_the_model_without_reduction(evit, leaf):
    packed = evit.trained.prepare(leaf)
    prediction = Prediction({}, None, None, gmacs=0.5)
    reduced, full = evit.compare_costs(
        Variant('EViT', 0.5), packed, prediction
    )
    assert (reduced.title, reduced.gmacs) == ('EViT, keep rate 0.5', 0.5)
    bare = with_reduction(evit.trained.model._config.model)
    flops = count_config(bare).flops
    assert full.gmacs == pytest.approx(flops / 1e9, rel=1e-2)
    assert 0 < reduced.milliseconds < 5000 and 0 < full.milliseconds < 5000
