# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from pathlib import Path
from types import SimpleNamespace

import pytest

from mmclca.datasets.photographs import LabeledImages
from mmclca.fitting.model import ATC, classifier_config
from mmclca.fitting.training import num_steps, read_recipe, training_config
from mmclca.fitting.weights import PIXELS, VIT, Pretrained
from mmclca.models import Variant

MODEL = Variant(**ATC, img_size=224)
ARCH = dict(
    embed_dims=192, num_layers=12, num_heads=3, feedforward_channels=768
)
NORM = dict(type='LN', eps=1e-6)
BACKBONE = dict(type=VIT, arch=ARCH, patch_size=16, norm_cfg=NORM)
DEIT = Pretrained(
    'deit_tiny', 'deit_tiny.pth', BACKBONE, PIXELS['imagenet'], ''
)


def config_of(work_dir, class_weights=None):
    """The training of 40 classes of two photographs, of the first of three."""
    labels = [0, *range(40), *range(40)]
    paths = [f'{i}.jpg' for i in range(81)]
    classes = [f'class {i}' for i in range(40)]
    plan = SimpleNamespace(
        call=dict(class_weights=class_weights),
        variant=MODEL,
        config=classifier_config(DEIT, MODEL, 40),
    )
    found = LabeledImages(paths, labels, classes, None, [''] * 81, '.')
    return training_config(plan, found, 'probe.pth', work_dir)


def test_model_and_images_are_as_was_measured(tmp_path):
    trained, measured = config_of(tmp_path), read_recipe()
    assert trained.model.head.loss == measured.model.head.loss
    own, theirs = trained.model.backbone, measured.model.backbone
    names = 'depth', 'img_size', 'patch_size', 'norm_cfg'
    for name in (*names, 'frozen_stages'):
        assert own[name] == theirs[name]
    for name in ('out_indices', 'reduce_at'):
        assert [*own[name]] == [*theirs[name]]
    mean = trained.model.data_preprocessor.mean
    assert mean == measured.model.data_preprocessor.mean
    for name in ('train_dataloader', 'test_dataloader'):
        (own, *rest), (theirs, *others) = (
            config[name].dataset.pipeline for config in (trained, measured)
        )
        assert rest == others
    own, theirs = (x.train_dataloader.dataset for x in (trained, measured))
    (load, resize), (_, same) = (
        x.pipeline[0].transforms for x in (own, theirs)
    )
    assert resize == same
    assert load == dict(type='mmclca.LoadPhotograph')  # of all kinds


def test_no_path_depends_on_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trained = config_of(Path('model'))
    own = trained.train_dataloader.dataset
    places = trained.load_from, trained.work_dir, own.data_root, own.classes
    assert all(place.startswith(f'{tmp_path}/') for place in places)
    assert 'leaf40' not in trained.pretty_text


def test_classes_that_count_alike(tmp_path):
    weights = config_of(tmp_path, 'balanced').model.head.loss.class_weight
    assert weights == pytest.approx([81 / 120] + [81 / 80] * 39)


def test_steps():
    images = {24: 160, 120: 160, 257: 180, 3200: 2000}
    recipe = read_recipe()
    assert images == {n: num_steps(recipe, n) for n in images}
