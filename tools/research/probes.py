# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Linear classifiers on features of networks that are not trained further."""

import json
import time
from pathlib import Path

import torch
from mmengine import list_from_file
from mmengine.config import Config
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from mmclca.apis import Probe
from mmclca.apis.probe import fit_linear
from mmclca.apis.probe.classifiers import Task
from mmclca.benchmark import Setting
from mmclca.benchmark.steps import machine
from mmclca.evaluation.cost import count_config
from mmclca.models import with_layer_fusion
from mmclca.sweep.compose import NONE, Cell, compose
from mmclca.utils.files import replace_text

GRID = 'configs/sweeps/few_photographs_probes.py'
COMMAND = 'python tools/research/pages.py few_photographs'
NUM_DRAWS = 10


def kept(file, measure, *given):
    """Return what was measured once and is kept in a file."""
    if not file.exists():
        replace_text(file, json.dumps(measure(*given), indent=1) + '\n')
        print(file, flush=True)
    return json.loads(file.read_text())


def facts():
    """Return where and with what is measured."""
    torch.set_num_threads(1)
    return machine(Setting(batch=1), COMMAND)


def frozen_arms(folder):
    """Results of all arms of the grid; those that are missing are measured."""
    arms = Config.fromfile(GRID).to_dict()['probes']
    return [
        kept(folder / f'{arm["name"]}.json', measure_arm, arm) for arm in arms
    ]


def config_of(arm):
    """Config of the network as far as it is read, and of its images."""
    frozen = arm['frozen']
    method, size = frozen['method'] or NONE, frozen['img_size']
    parts = frozen['backbone'], method, frozen['keep_rate'], size
    config = compose(Cell('leaf40', *parts, 'base', seed=1))
    layers = tuple(arm['layers'])
    config.model = with_layer_fusion(config.model, layers, arm['out_type'])
    return config


def measure_arm(probe):
    """Fit and test a classifier on each draw of a data set."""
    where, arm = facts(), probe['record']['arm']
    config = config_of(arm)
    draws = [
        [read_list(f'{probe["draws"]}/d{i}{end}.txt') for end in ('', '_test')]
        for i in range(NUM_DRAWS)
    ]
    labels = draws[0][0] | draws[0][1]
    files = [Path(probe['data'], path) for path in labels]
    features, _ = Probe(config, probe['weights']).features(files)
    features = dict(zip(labels, features, strict=True))  # all were read
    tested = [fit_and_test(arm, features, *draw) for draw in draws]
    cost = count_config(config.model)
    return dict(
        probe['record'],
        train_images=len(draws[0][0]),
        **{key: [one[key] for one in tested] for key in tested[0]},
        gmacs=cost.flops / 1e9,
        params=cost.params,
        machine=where,
    )


def read_list(file):
    """Labels by path, of a list of lines ``path label``."""
    pairs = (line.rpartition(' ') for line in list_from_file(file))
    return {path: int(label) for path, _, label in pairs}


def fit_and_test(arm, features, train, test):
    """Accuracies in per cent, and what the fit took, of one draw.

    Three folds of the training images choose the strength, if the arm names
    none.
    """
    x = torch.stack([features[path] for path in train])
    labels, right = list(train.values()), list(test.values())
    given = x, torch.tensor(labels), 1 + max(labels), arm['classifier']
    start, strength = time.process_time(), arm['strength']
    if strength is None:
        task = Task.of(*given, groups=None, class_weights=None)
        strength = task.strengths[task.choose(3, seed=0)]
    if arm['classifier'] == 'knn':
        guess = KNeighborsClassifier(1, metric='cosine').fit(x, labels).predict
    else:
        scores = fit_linear(*given, strength).scores
        guess = lambda x: scores(x).argmax(1)  # noqa: E731
    seconds = time.process_time() - start
    found = guess(torch.stack([features[path] for path in test]))
    return dict(
        accuracy=round(100 * accuracy_score(right, found), 4),
        macro_recall=round(100 * balanced_accuracy_score(right, found), 4),
        strength=strength,
        fit_seconds=round(seconds, 3),
    )
