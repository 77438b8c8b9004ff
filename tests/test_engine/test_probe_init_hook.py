# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from copy import deepcopy

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner
from tiny_run import write_run

from mmclca.apis.probe import fit_linear, out_of_fold
from mmclca.datasets.batches import batches, dataset_of
from mmclca.engine.testing import mirrored
from mmclca.models import last_linear, with_layer_fusion, with_reduction


@pytest.fixture
def build(tmp_path):
    """Build a runner for the tiny config with learning rate 0."""
    path = write_run(tmp_path)

    def build(change=deepcopy, hook={}, **settings):
        config = Config.fromfile(path)
        config.model = change(config.model)
        config.work_dir = str(tmp_path / 'work')
        config.train_cfg.max_epochs = 1
        config.optim_wrapper.optimizer.update(lr=0.0, weight_decay=0.0)
        config.val_cfg = config.val_dataloader = config.val_evaluator = None
        config.custom_hooks = [dict(type='mmclca.ProbeInitHook', **hook)]
        config.update(settings)
        return Runner.from_cfg(config)

    return build


def fusion(model):
    return with_layer_fusion(model, (0, 1, 2))


def cla(model):
    return with_reduction(model, 'EViT', 0.5, reduce_at=(1,), cla=True)


def features_of(runner):
    model = runner.model.eval()
    dataset = dataset_of(runner.cfg, 'train')
    (whole,) = batches(model, dataset, range(len(dataset)), len(dataset))
    with torch.no_grad():
        features = model.extract_feat(whole.images, stage='pre_logits')
    return features, torch.tensor(whole.labels)


@pytest.mark.parametrize('change', [fusion, deepcopy])
def test_head_equals_linear_probe_on_training_images(build, change):
    runner = build(change, hook=dict(classifier='ridge'))
    runner.train()
    features, labels = features_of(runner)
    found = out_of_fold(features, labels, 4)
    expected = fit_linear(features, labels, 4, 'ridge', found.strength)
    layer = last_linear(runner.model.head)
    torch.testing.assert_close(
        layer.weight, expected.weight / found.temperature, rtol=1e-3, atol=1e-4
    )
    right = layer(features).argmax(1) == expected.scores(features).argmax(1)
    assert right.all()


def test_batch_norm_of_cla_has_training_image_statistics(build):
    runner = build(cla)
    runner.call_hook('before_run')
    runner._train_loop = runner.build_train_loop(runner._train_loop)
    runner.call_hook('before_train')
    norm = runner.model.head.layers[0]
    assert norm.momentum == 0.1 and norm.num_batches_tracked == 1
    features, labels = features_of(runner)
    scores = last_linear(runner.model.head)(features[..., None])[..., 0]
    assert (scores.argmax(1) == labels).float().mean() > 0.5


def test_random_numbers_of_training_stay_the_same(build):
    weights = []
    for hooks in ([], [dict(type='mmclca.ProbeInitHook')]):
        runner = build(fusion, custom_hooks=hooks)
        runner.train()
        weights.append(torch.rand(1))
    assert torch.equal(*weights)
    assert runner.model.training


def test_last_view_is_used_if_test_has_several_views(build):
    heads = []
    for views in (False, True):
        runner = build(fusion)
        dataset = runner.cfg.test_dataloader.dataset
        if views:
            dataset.pipeline = mirrored(dataset.pipeline)
        runner.train()
        heads.append(last_linear(runner.model.head).weight)
    assert heads[0].any() and torch.equal(*heads)


def test_head_is_unchanged_if_run_is_resumed(build):
    first = build(fusion)
    first.train()
    last = first.model.head.fc.weight.detach().clone()
    more = build(
        fusion, resume=True, train_cfg=dict(by_epoch=True, max_epochs=2)
    )
    more.train()
    torch.testing.assert_close(more.model.head.fc.weight, last)
