# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classifiers on frozen features: the grid of arms, draws, and what is
measured."""

import json
from collections import Counter
from pathlib import Path

import probes
import pytest
import torch
from mmengine.config import Config
from tiny_run import ROOT

from mmclca.evaluation.cost import count_config

GRID = Config.fromfile(ROOT / probes.GRID).to_dict()
RESULTS = ROOT / 'docs/results/few_photographs'


def draw_of(dataset, number):
    folder = ROOT / 'configs/few_shot/draws' / dataset
    names = f'd{number}.txt', f'd{number}_test.txt'
    return [probes.read_list(str(folder / name)) for name in names]


def test_the_grid_is_that_of_the_results():
    files = {file.stem: file for file in (RESULTS / 'probes').iterdir()}
    assert files.keys() == {probe['name'] for probe in GRID['probes']}
    for probe in GRID['probes']:
        stored = json.loads(files[probe['name']].read_text())
        assert probe['record'].items() <= stored.items()
    lines = {probe['record']['arm']['line'] for probe in GRID['probes']}
    assert lines | {*GRID['trained'].values()} == {*GRID['lines']}


@pytest.mark.parametrize('dataset', ['leaf40', 'leaf40_white'])
def test_draws_are_stratified_disjoint_and_whole(dataset):
    draws = [draw_of(dataset, i) for i in range(probes.NUM_DRAWS)]
    everything = {**draws[0][0], **draws[0][1]}
    assert len(everything) == 442
    for train, test in draws:
        assert Counter(train.values()) == dict.fromkeys(range(40), 3)
        assert not train.keys() & test.keys()
        assert {**train, **test} == everything
    assert len({tuple(sorted(train)) for train, _ in draws}) == 10


def test_what_networks_compute():
    """Of half of the tokens, images and layers, and of the other weights."""
    by_name = {one['name']: one['record']['arm'] for one in GRID['probes']}
    for name, tokens in {
        'evit-kr50_224px_average-0-8': [197] * 3 + [100] * 3 + [52] * 3,
        'full-kr100_128px_average-0-8': [65] * 9,
        'full-kr100_224px_average-0-6': [197] * 7,
    }.items():
        arm = by_name[f'leaf40_vit-tiny-p16_{name}_ridge']
        config = probes.config_of(arm)
        assert config.model.data_preprocessor.mean[0] == 127.5
        assert count_config(config.model).tokens == tokens
        steps = config.test_dataloader.dataset.pipeline
        assert steps[2]['crop_size'] == (arm['frozen']['img_size'],) * 2


def test_a_classifier_is_tested_on_the_others():
    labels = {f'{i}.jpg': int(i > 12) for i in range(20)}
    features = {
        path: torch.tensor([float(label), int(path[:-4]) / 100])
        for path, label in labels.items()
    }
    features |= {f'{i}.jpg': features['0.jpg'] for i in (18, 19)}  # look alike
    names = [f'{i}.jpg' for i in (0, 1, 2, 13, 14, 15)]
    train = {name: labels.pop(name) for name in names}
    arm = dict(classifier='ridge', strength=None)
    found = probes.fit_and_test(arm, features, train, labels)
    assert found['accuracy'] == round(100 * 12 / 14, 4)
    assert found['macro_recall'] == 75  # of ten all, of four a half
    assert found['strength'] in (0.03, 0.1, 0.3, 1.0, 3.0)
    knn = dict(classifier='knn', strength=1)
    assert probes.fit_and_test(knn, features, train, labels)['strength'] == 1


def few(file, read_list=probes.read_list):
    """The images of the first four classes of a list."""
    return {path: n for path, n in read_list(file).items() if n < 4}


def test_a_result_has_the_keys_of_those_that_are_there(shared, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(probes, 'NUM_DRAWS', 1)
    monkeypatch.setattr(probes, 'read_list', few)
    by_name = {one['name']: one for one in GRID['probes']}
    name = 'leaf40_white_deit-tiny-p16_evit-kr50_144px_average-0-8_ridge'
    weights = shared / 'weights' / Path(by_name[name]['weights']).name
    probe = dict(by_name[name], data=str(shared / 'data/leaf40_white'))
    found = probes.measure_arm(dict(probe, weights=str(weights)))
    stored = json.loads((RESULTS / f'probes/{name}.json').read_text())
    assert found.keys() == stored.keys()
    assert found['accuracy'][0] > 50 and found['params'] == stored['params']


def test_kept(tmp_path):
    asked = []
    file = tmp_path / 'new' / 'one.json'
    for _ in range(2):
        found = probes.kept(file, lambda n: asked.append(n) or dict(n=n), 3)
        assert found == dict(n=3)
    assert asked == [3]
