# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Schedules chosen by the clock, compared with the fixed list of ``fit``.

``python tools/research/pages.py schedules`` measures missing results: for each
budget and dataset, the accuracy of the schedule that was chosen without this
dataset, with three photos per class.
"""

from functools import cache

import pandas as pd
import torch
from frozen import DEPTH, FILES, KEPT, WEIGHTS, photos
from mmengine.config import Config
from schedule_choice import Clock, Losses, Schedule, choose, transform
from schedule_losses import NAMES, measure_schedule, read_losses
from study.networks import find_pretrained
from tables import half_width, kept, read, read_machine, select, write
from training_subsets import draws, get_labels

from mmclca.apis import Probe
from mmclca.apis.probe import FoldSettings
from mmclca.benchmark.layer_times import LayerTimes, look_up_layer_times
from mmclca.benchmark.timing import time_models
from mmclca.fitting.candidates import NO_REDUCTION
from mmclca.fitting.model_config import build_config
from mmclca.fitting.plan import CROP_ZOOMS
from mmclca.models import Variant
from mmclca.utils.provenance import provenance

GRID = Config.fromfile('configs/sweeps/schedules.py').to_dict()
STUDY, LATENCIES = 'schedules', 'schedule_latencies'
TIMES = 'schedule_times'
FILE = FILES['vit-tiny-p16']
PHOTOS = 3  # per class
CHOSEN, FIXED = 'chosen', 'fixed'


def values():
    """Return the values for the template."""
    rows = kept(STUDY, measure, [*list_wanted()])
    tables = {budget: compare(rows, budget) for budget in GRID['budgets']}
    incomplete = compare(rows, GRID['incomplete']).gain.dropna()
    latencies = read_latencies()
    ratios = [x['additive'] / x['loss'] - 1 for x in latencies.values()]
    return dict(
        facts=read_machine(STUDY),
        budgets=[summarize(x, budget) for budget, x in tables.items()],
        latencies=latencies,
        incomplete=(len(incomplete), incomplete.mean()),
        excess=[100 * min(ratios), 100 * max(ratios)],
        names=[*NAMES],
        gain=lambda budget, name: tables[budget].gain[name],
        total=summarize(pd.concat(tables.values()), None),
    )


def compare(rows, budget):
    """Return accuracies of fixed and chosen schedules by dataset."""
    chosen = select(rows, dict(budget=budget, kind=CHOSEN))
    chosen = chosen.set_index('dataset')
    fixed = select(rows, dict(budget=budget, kind=FIXED))
    table = pd.DataFrame(
        dict(
            fixed=fixed.set_index('dataset').accuracy,
            chosen=chosen.accuracy,
            schedule=chosen.schedule,
        )
    )
    return table.assign(gain=table.chosen - table.fixed).reindex(NAMES)


def summarize(table, budget):
    """Return means, the gain with its 95% t interval, and the worst loss."""
    mean, half = table.gain.mean(), half_width(table.gain)
    return dict(
        budget=budget,
        fixed=table.fixed.mean(),
        chosen=table.chosen.mean(),
        gain=mean,
        low=mean - half,
        high=mean + half,
        worst=table.gain.min(),
        worst_name=table.gain.idxmin(),
        schedules=table.schedule.value_counts().to_dict(),
    )


def read_latencies():
    """Return milliseconds and losses of schedules, predicted and measured."""
    listed = [get_fixed(budget) for budget in GRID['budgets']]
    for name in NAMES:
        listed += [choose_without(name, x) for x in GRID['budgets']]
    schedules = {schedule.title: schedule for schedule in listed}
    stored = read(LATENCIES)
    if stored.empty or {*schedules} - {*stored.schedule}:
        models = {x: build(y).model.to_dict() for x, y in schedules.items()}
        measured, _ = time_models(models, 'onnx', 'cpu')
        clock, losses = read_clock(), Losses(read_losses(), [*NAMES])
        stored = pd.DataFrame(
            dict(
                schedule=title,
                predicted=clock.total(schedule),
                ms=measured[title],
                additive=losses.total(schedule),
                loss=transform(measure_schedule(schedule)),
            )
            for title, schedule in schedules.items()
        )
        write(LATENCIES, stored)
    return stored.set_index('schedule').to_dict('index')


@cache
def read_clock():
    """Return the milliseconds of layers; measure them if missing."""
    times = read(TIMES)
    if times.empty:
        backbone = build(Schedule(224, {})).model.backbone.to_dict()
        measured = look_up_layer_times(backbone, 197)
        times = pd.DataFrame(
            dict(tokens=measured.counts, ms=measured.milliseconds)
        )
        write(TIMES, times)
    return Clock(LayerTimes(times.tokens.tolist(), times.ms.tolist()))


@cache
def choose_without(name, img_size):
    """Choose a schedule without a dataset.

    The budget is the latency of the fixed schedule at ``img_size``.
    """
    losses = Losses(read_losses(), [x for x in NAMES if x != name])
    clock = read_clock()
    budget = clock.total(get_fixed(img_size))
    choices = [choose(clock, losses, x, budget) for x in GRID['sizes']]
    return min(choices, key=lambda choice: choice[0])[1]


def get_fixed(img_size):
    """Return the schedule of DiffRate 0.5."""
    patches = Schedule(img_size, {}).num_patches
    return Schedule(
        img_size, {3: patches // 2, 6: patches // 4, 9: patches // 8}
    )


def build(schedule):
    """Return the config of a ViT-Tiny with a schedule."""
    layers = (*range(DEPTH),)
    variant = Variant(
        **NO_REDUCTION, img_size=schedule.img_size, layers=layers
    )
    config = build_config(find_pretrained(FILE), variant, 2)
    backbone = config.model.backbone
    if schedule.steps:
        counts = tuple(schedule.steps.values())
        backbone.reducer = dict(type='mmclca.DiffRate', num_tokens=counts)
        backbone.reduce_at = tuple(schedule.steps)
    return config


def measure(schedule, name):
    """Return the row of a schedule and a dataset."""
    source = str(WEIGHTS / FILE)
    probe = Probe(build(schedule), source, 'cpu', KEPT, zooms=CROP_ZOOMS)
    accuracy = round(measure_dataset(probe, photos(NAMES)[name]), 2)
    commit = provenance()['commit']
    return [dict(schedule=schedule.title, accuracy=accuracy, commit=commit)]


def measure_dataset(probe, dataset):
    """Return the mean accuracy in percent over random training subsets."""
    labels, tested = get_labels(dataset)
    paths = dataset.path[~tested.numpy()]
    labels, answers = labels[~tested], labels[tested]
    drawn = [*draws(labels, torch.ones(len(labels)) > 0, PHOTOS)]
    used = torch.cat(drawn).unique()
    views = probe.views(paths.iloc[used.numpy()].tolist())[0]
    new = probe.features(dataset.path[tested.numpy()].tolist())[0]
    classes = [str(x) for x in range(1 + int(labels.max()))]
    accuracies = []
    for subset in drawn:
        features = views[torch.searchsorted(used, subset)]
        folds = FoldSettings(folds=PHOTOS)
        probe.fit(features, labels[subset], classes, folds=folds)
        right = probe.scores(new).argmax(1) == answers
        accuracies.append(100 * right.float().mean().item())
    return sum(accuracies) / len(accuracies)


def list_wanted():
    """Yield the identifying columns and the arguments of each row."""
    for budget in GRID['budgets']:
        for name in NAMES:
            keys = dict(budget=budget, dataset=name)
            chosen = choose_without(name, budget)
            yield keys | dict(kind=CHOSEN), (chosen, name)
            yield keys | dict(kind=FIXED), (get_fixed(budget), name)
