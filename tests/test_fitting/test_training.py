# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Settings of fine-tuning: recipe, hold-out set and conditions."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from mmclca.datasets.photos import LabeledImages
from mmclca.fitting.candidates import ATC
from mmclca.fitting.fine_tuning import (
    explain_too_few,
    hold_out,
    num_steps,
    photos_per_class,
    read_recipe,
    training_config,
)
from mmclca.fitting.model_config import build_config
from mmclca.fitting.options import FitOptions
from mmclca.fitting.weights import PIXELS, VIT, PretrainedWeights
from mmclca.models import Variant

MODEL = Variant(**ATC, img_size=224)
ARCH = dict(
    embed_dims=192, num_layers=12, num_heads=3, feedforward_channels=768
)
NORM = dict(type='LN', eps=1e-6)
BACKBONE = dict(type=VIT, arch=ARCH, patch_size=16, norm_cfg=NORM)
DEIT = PretrainedWeights(
    'deit_tiny', 'deit_tiny.pth', BACKBONE, PIXELS['imagenet'], ''
)


def photos(*counts, groups=None):
    """Labeled photos, with a number per class."""
    labels = [i for i, n in enumerate(counts) for _ in range(n)]
    paths = [f'{n}.jpg' for n in range(len(labels))]
    classes = [f'class {i}' for i in range(len(counts))]
    splits = [''] * len(paths)
    return LabeledImages(paths, labels, classes, groups, splits, '.')


def config_of(work_dir, class_weights=None):
    """Training config for 40 classes with three or two photos."""
    plan = SimpleNamespace(
        options=FitOptions(class_weights=class_weights),
        pretrained=DEIT,
        variant=MODEL,
        config=build_config(DEIT, MODEL, 40),
    )
    found = photos(3, *[2] * 39)
    return training_config(plan, found, 'probe.pth', work_dir)


def test_config_has_the_model_and_pipelines_of_the_recipe(tmp_path):
    config, recipe = config_of(tmp_path), read_recipe()
    assert config.model.head.loss == recipe.model.head.loss
    own, theirs = config.model.backbone, recipe.model.backbone
    names = 'depth', 'img_size', 'patch_size', 'norm_cfg'
    for name in (*names, 'frozen_stages'):
        assert own[name] == theirs[name]
    for name in ('out_indices', 'reduce_at'):
        assert [*own[name]] == [*theirs[name]]
    mean = config.model.data_preprocessor.mean
    assert mean == recipe.model.data_preprocessor.mean
    loaders = 'train_dataloader', 'test_dataloader'
    for name in loaders:
        (_, *rest), (_, *expected) = (
            one[name].dataset.pipeline for one in (config, recipe)
        )
        assert rest == expected
    (load, resize), (_, expected) = (
        one.train_dataloader.dataset.pipeline[0].transforms
        for one in (config, recipe)
    )
    assert resize == expected
    assert load == dict(type='mmclca.LoadPhoto')


def test_config_has_absolute_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = config_of(Path('model'))
    data = config.train_dataloader.dataset
    places = config.load_from, config.work_dir, data.data_root, data.classes
    assert all(place.startswith(f'{tmp_path}/') for place in places)
    assert 'leaf40' not in config.pretty_text


def test_balanced_classes_have_equal_total_weight(tmp_path):
    weights = config_of(tmp_path, 'balanced').model.head.loss.class_weight
    assert weights == pytest.approx([81 / 120] + [81 / 80] * 39)


def test_num_steps_has_a_minimum_per_epoch():
    images = {24: 160, 120: 160, 257: 180, 3200: 2000}
    recipe = read_recipe()
    assert images == {n: num_steps(recipe, n) for n in images}


def test_hold_out_is_a_fifth_per_class():
    found = photos(10, 5, 1)
    train, held_out = hold_out(found)
    assert sorted(train + held_out) == [*range(16)]
    assert [found.labels[i] for i in held_out].count(0) == 2
    assert [found.labels[i] for i in held_out].count(1) == 1
    assert 15 in train  # the only one in its class


def test_hold_out_keeps_groups_together():
    groups = ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd']
    train, held_out = hold_out(photos(4, 4, groups=groups))
    assert held_out
    assert not {groups[i] for i in train} & {groups[i] for i in held_out}


@pytest.mark.parametrize(
    'groups', [['a', 'b', 'a', 'a'], ['b', 'a', 'b', 'b']]
)
def test_hold_out_has_photos_if_a_class_is_in_groups_of_another(groups):
    train, held_out = hold_out(photos(2, 2, groups=groups))
    assert held_out == [1] and sorted(train) == [0, 2, 3]


def test_photos_per_class_counts_a_group_once():
    groups = [f'plant {i // 2}' for i in range(400)]
    assert photos_per_class(photos(200, 200, groups=groups)) == [100, 100]


@pytest.mark.parametrize(
    'counts, why',
    [
        ((100, 100), ''),
        ((100, 99), '199 photos'),
        ((8,) * 25, ''),
        ((7,) * 30, '7 photos'),
        ((300, 3, 3), '3 photos'),
    ],
)
def test_fine_tuning_is_skipped_if_few_photos(counts, why):
    found = explain_too_few(photos(*counts))
    assert why in found and bool(why) is bool(found)


def test_fine_tuning_is_skipped_if_few_groups():
    groups = [f'plant {i // 2}' for i in range(240)]
    assert '120 groups' in explain_too_few(photos(120, 120, groups=groups))
