# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import logging
from copy import deepcopy
from types import SimpleNamespace

import pytest
import torch

from mmclca.apis.probe import LabeledFeatures, fit_linear, out_of_fold
from mmclca.datasets.batches import batches, build_dataset
from mmclca.engine.testing import mirrored
from mmclca.models import last_linear, with_layer_fusion, with_reduction
from mmclca.registry import HOOKS, MODELS


@pytest.fixture
def start(config):
    """Function to start a run with the hook, which returns the run."""

    def start(change, views=False, **state):
        cfg, hook = config(), HOOKS.build(dict(type='mmclca.ProbeInitHook'))
        dataset = cfg.test_dataloader.dataset
        if views:
            dataset.pipeline = mirrored(dataset.pipeline)
        torch.manual_seed(0)
        model = MODELS.build(
            dict(change(cfg.model), data_preprocessor=cfg.data_preprocessor)
        )
        runner = SimpleNamespace(
            **dict(iter=0, model=model, cfg=cfg) | state,
            logger=logging.getLogger('mmclca'),
        )
        hook.before_train(runner)
        return runner

    return start


def fusion(model):
    return with_layer_fusion(model, (0, 1, 2))


def cla(model):
    return with_reduction(model, 'EViT', 0.5, reduce_at=(1,), cla=True)


def features_of(runner):
    model = runner.model.eval()
    dataset = build_dataset(runner.cfg, 'train')
    (whole,) = batches(model, dataset, range(len(dataset)), len(dataset))
    with torch.no_grad():
        features = model.extract_feat(whole.images, stage='pre_logits')
    return features, torch.tensor(whole.labels)


@pytest.mark.parametrize('change', [fusion, deepcopy])
def test_head_equals_linear_probe_on_training_images(start, change):
    runner = start(change)
    assert runner.model.training
    features, labels = features_of(runner)
    data = LabeledFeatures(features, labels, 4)
    found = out_of_fold(data)
    expected = fit_linear(data, setting=found.setting)
    layer = last_linear(runner.model.head)
    torch.testing.assert_close(
        layer.weight, expected.weight / found.temperature, rtol=1e-3, atol=1e-4
    )
    right = layer(features).argmax(1) == expected.scores(features).argmax(1)
    assert right.all()


def test_batch_norm_of_cla_has_training_image_statistics(start):
    runner = start(cla)
    norm = runner.model.head.layers[0]
    assert norm.momentum == 0.1 and norm.num_batches_tracked == 1
    features, labels = features_of(runner)
    scores = last_linear(runner.model.head)(features[..., None])[..., 0]
    assert (scores.argmax(1) == labels).float().mean() > 0.5


def test_last_view_and_same_random_numbers_are_used(start):
    one, several, resumed = (
        (start(fusion, **options).model.head.fc.weight, torch.rand(1))
        for options in ({}, dict(views=True), dict(iter=4))
    )
    assert torch.equal(one[0], several[0])
    assert not torch.equal(one[0], resumed[0])  # not initialized again
    assert one[1] == several[1] == resumed[1]
