# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pieces of configs by their names, ours and those of a user."""

import pytest
from tiny_run import ROOT

from mmclca.sweep.compose import (
    DATASETS,
    MODELS,
    RECIPES,
    RUNTIME,
    find,
    names,
)

BASE = ROOT / 'configs/_base_'


def write(path, text='a = 1'):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_ours():
    assert {'leaf40', 'cotton80', 'soyageing-r1', 'cub'} <= {*names(DATASETS)}
    assert not any('leaves_' in name for name in names(DATASETS))
    models = {'vit-base-p16', 'deit-tiny-p16', 'clca-tome_vit-base-p16'}
    assert models <= {*names(MODELS)}
    recipes = ['clca_50e', 'deit_300e', 'few_shot_20e', 'scratch_40e']
    assert names(RECIPES) == recipes


@pytest.mark.parametrize('name', ['vit-base-p16', 'clca-evit_vit-base-p16'])
def test_short_and_whole_names(name):
    file = BASE / 'models/clca-evit_vit-base-p16.py'
    assert find(MODELS, name) == file


@pytest.mark.parametrize('name', ['leaf40', 'leaf40_224'])
def test_data_sets_with_and_without_their_size(name):
    assert find(DATASETS, name) == BASE / 'datasets/leaf40_224.py'


@pytest.mark.parametrize('base', ['.', '_base_'])
def test_a_folder_of_the_user_comes_first(tmp_path, base):
    folders, base = (tmp_path,), tmp_path / base
    mine = write(base / 'models/vit-base-p16.py')
    leaves = write(base / 'datasets/my-leaves_96.py')
    recipe = write(base / 'schedules/short.py')
    runtime = write(base / 'default_runtime.py')
    assert find(MODELS, 'vit-base-p16', folders) == mine
    assert find(DATASETS, 'my-leaves', folders) == leaves
    assert find(RECIPES, 'short', folders) == recipe
    assert find(RUNTIME, 'default_runtime', folders) == runtime
    # what it does not have is ours
    assert find(MODELS, 'deit-tiny-p16', folders).parent == BASE / 'models'
    assert find(RECIPES, 'clca_50e', folders).parent == BASE / 'schedules'


def test_whole_configs_are_models(tmp_path):
    mine = write(tmp_path / 'my_model.py')
    write(tmp_path / '__init__.py')
    assert find(MODELS, 'my_model', (tmp_path,)) == mine
    assert '__init__' not in names(MODELS, (tmp_path,))


def test_what_is_not_there_and_where_was_looked(tmp_path):
    write(tmp_path / 'models/my-vit.py')
    with pytest.raises(ValueError) as error:
        find(MODELS, 'my-vit2', (tmp_path,))
    said = str(error.value)
    assert said.startswith("no 'my-vit2' (do you mean my-vit?); there are ")
    assert said.endswith(f'looked in {tmp_path}, {ROOT / "configs"}')
    assert '\n' not in said
