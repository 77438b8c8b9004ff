# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
from mmengine.config import Config
from tiny_run import ROOT

from mmclca.fitting.architecture import VIT
from mmclca.fitting.candidates import ACCURACY
from mmclca.fitting.classifier import classifier_config
from mmclca.fitting.recipe import num_steps, training_config
from mmclca.fitting.weights import Pretrained

ARCH = dict(
    embed_dims=192, num_layers=12, num_heads=3, feedforward_channels=768
)
DEIT = Pretrained(
    'deit_tiny.pth',
    dict(
        type=VIT, arch=ARCH, patch_size=16, norm_cfg=dict(type='LN', eps=1e-6)
    ),
    (123.675, 116.28, 103.53),
    (58.395, 57.12, 57.375),
    '',
)


@pytest.fixture
def trained(tmp_path):
    config = classifier_config(DEIT, next(iter(ACCURACY)), 40)
    lists = dict(train=tmp_path / 't.txt', classes=tmp_path / 'c.txt')
    return training_config(config, 'probe.pth', lists, tmp_path, None, 0)


@pytest.fixture
def measured():
    """The config that the recipe was measured with."""
    (path,) = ROOT.glob('configs/few_shot/*_leaf40-*.py')
    return Config.fromfile(path)


def test_training_is_what_was_measured(trained, measured):
    for name in ('optim_wrapper', 'param_scheduler'):
        assert trained[name] == measured[name]
    assert trained.train_cfg.max_epochs == measured.train_cfg.max_epochs
    loaders = trained.train_dataloader, measured.train_dataloader
    own, theirs = (
        (x.batch_size, x.sampler.min_samples, x.dataset.pipeline[1:])
        for x in loaders
    )
    assert own == theirs


def test_the_model_is_what_was_measured(trained, measured):
    head, theirs = trained.model.head, measured.model.head
    assert {**head, **theirs, 'loss': 0} == {**head, 'loss': 0}
    assert {**head.loss, **theirs.loss} == head.loss
    own, theirs = trained.model.backbone, measured.model.backbone
    names = 'depth', 'out_type', 'img_size', 'patch_size', 'norm_cfg'
    for name in (*names, 'frozen_stages'):
        assert own[name] == theirs[name]
    for name in ('out_indices', 'reduce_at'):
        assert [*own[name]] == [*theirs[name]]
    mean = trained.model.data_preprocessor.mean
    assert mean == measured.model.data_preprocessor.mean


def test_test_images_are_prepared_as_was_measured(trained, measured):
    own = trained.test_dataloader.dataset.pipeline
    assert (
        own[0]['type'] == 'mmclca.LoadPhotograph'
    )  # photographs of all kinds
    assert own[1:] == measured.test_dataloader.dataset.pipeline[1:]


@pytest.mark.parametrize(
    'images, steps', [(24, 160), (120, 160), (257, 180), (3200, 2000)]
)
def test_steps(images, steps):
    assert num_steps(images) == steps
