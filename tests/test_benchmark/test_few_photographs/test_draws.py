# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draws of few training images, and the files that they are kept in."""

from collections import Counter

import numpy as np
import pytest
from mmengine.config import Config
from mmpretrain.datasets import CustomDataset

from mmclca.benchmark.few_photographs.draws import (
    NUM_DRAWS,
    OF_A_CLASS,
    draw,
    draws_folder,
    read_draw,
    write_draws,
)

DATASETS = 'leaf40', 'leaf40_white'


def test_draw_takes_as_many_of_each_class():
    labels = [0] * 5 + [1] * 9 + [2] * 3
    drawn = draw(labels, 3, seed=1)
    assert np.take(labels, drawn).tolist() == [0] * 3 + [1] * 3 + [2] * 3
    assert len(set(drawn.tolist())) == 9
    assert drawn.tolist() == draw(labels, 3, seed=1).tolist()
    assert drawn.tolist() != draw(labels, 3, seed=2).tolist()


@pytest.mark.parametrize('dataset', DATASETS)
def test_draws_are_stratified_disjoint_and_whole(dataset):
    draws = [read_draw(dataset, number) for number in range(NUM_DRAWS)]
    everything = set(sum(draws[0], []))
    assert len(everything) == 442
    for train, test in draws:
        assert Counter(label for _, label in train) == dict.fromkeys(
            range(40), OF_A_CLASS
        )
        assert len(train) + len(test) == len(everything)
        assert {*train, *test} == everything
    assert len({tuple(sorted(train)) for train, _ in draws}) == NUM_DRAWS


@pytest.mark.parametrize('dataset', DATASETS)
def test_draws_are_those_of_their_seeds(dataset, shared, tmp_path):
    write_draws(shared / 'data' / dataset, tmp_path)
    written = {file.name: file.read_text() for file in tmp_path.iterdir()}
    kept = draws_folder(dataset).iterdir()
    assert written == {file.name: file.read_text() for file in kept}


def test_another_draw_is_not_lost(tmp_path):
    for name in ('train.txt', 'test.txt'):
        (tmp_path / name).write_text(''.join(f'{name}{i} 0\n' for i in '1234'))
    write_draws(tmp_path, tmp_path / 'draws')
    (tmp_path / 'train.txt').write_text('other.jpg 0\n')
    with pytest.raises(ValueError, match='another draw is there'):
        write_draws(tmp_path, tmp_path / 'draws')


def test_config_names_draws_from_anywhere(tmp_path, monkeypatch):
    """As the grid does: lists beside the config, images beside neither."""
    lists = tmp_path / 'configs/few_shot/draws'
    lists.mkdir(parents=True)
    (lists / 'd0.txt').write_text('images/a.jpg 1\n')
    grid = tmp_path / 'configs/sweeps/grid.py'
    grid.parent.mkdir()
    grid.write_text(
        "_draws = '{{ fileDirname }}/../few_shot/draws'\n"
        "dataset = dict(data_root='{{$MMCLCA_DATA:data}}/leaves', "
        "ann_file=f'{_draws}/d0.txt')\n"
    )
    monkeypatch.setenv('MMCLCA_DATA', str(tmp_path / 'sets'))
    config = Config.fromfile(grid)
    monkeypatch.chdir('/')
    image = CustomDataset(**config.dataset, pipeline=[])[0]
    assert image['img_path'] == str(tmp_path / 'sets/leaves/images/a.jpg')
    assert image['gt_label'] == 1
