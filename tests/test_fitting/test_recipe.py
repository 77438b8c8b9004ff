# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from types import SimpleNamespace

import pytest

from mmclca.datasets.photographs import Photographs
from mmclca.fitting.architecture import VIT
from mmclca.fitting.model import ACCURACY, classifier_config
from mmclca.fitting.record import FitRecord
from mmclca.fitting.training import num_steps, read_recipe, training_config
from mmclca.fitting.weights import Pretrained

MODEL = next(iter(ACCURACY))
READ = dict(type='mmclca.LoadPhotograph')  # of all kinds
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


def config_of(work_dir, class_weights=None):
    """The training of 40 classes of two photographs, of the first of three."""
    labels = [0, *range(40), *range(40)]
    paths = [f'{i}.jpg' for i in range(81)]
    classes = [f'class {i}' for i in range(40)]
    job = SimpleNamespace(
        record=FitRecord(call=dict(class_weights=class_weights)),
        variant=MODEL,
        config=classifier_config(DEIT, MODEL, 40),
    )
    found = Photographs(paths, labels, classes, None, [''] * 81, '.')
    return training_config(job, found, 'probe.pth', work_dir)


def test_the_model_is_what_was_measured(tmp_path):
    trained, measured = config_of(tmp_path), read_recipe()
    head, theirs = trained.model.head, measured.model.head
    assert {**head, **theirs, 'loss': 0} == {**head, 'loss': 0}
    own, theirs = trained.model.backbone, measured.model.backbone
    names = 'depth', 'out_type', 'img_size', 'patch_size', 'norm_cfg'
    for name in (*names, 'frozen_stages'):
        assert own[name] == theirs[name]
    for name in ('out_indices', 'reduce_at'):
        assert [*own[name]] == [*theirs[name]]
    mean = trained.model.data_preprocessor.mean
    assert mean == measured.model.data_preprocessor.mean


def test_images_are_prepared_as_was_measured(tmp_path):
    trained, measured = config_of(tmp_path), read_recipe()
    own, theirs = (
        (
            x.train_dataloader.dataset.pipeline,
            x.test_dataloader.dataset.pipeline,
        )
        for x in (trained, measured)
    )
    assert own[0][0].transforms[0] == own[1][0] == READ
    assert own[0][0].transforms[1] == theirs[0][0].transforms[1]
    assert [x[1:] for x in own] == [x[1:] for x in theirs]


def test_classes_that_count_alike(tmp_path):
    weights = config_of(tmp_path, 'balanced').model.head.loss.class_weight
    assert weights == pytest.approx([81 / 120] + [81 / 80] * 39)


@pytest.mark.parametrize(
    'images, steps', [(24, 160), (120, 160), (257, 180), (3200, 2000)]
)
def test_steps(images, steps):
    assert num_steps(read_recipe(), images) == steps
