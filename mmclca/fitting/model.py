# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What is fitted to what: the photographs, the weights and the model chosen.

The models that fit chooses from, and what they cost.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import torch
from mmengine.config import Config

from mmclca.datasets.photographs import Checked, Photographs
from mmclca.datasets.pipelines import evaluation_pipeline
from mmclca.evaluation.cost import count_config
from mmclca.models import Variant

from .record import FitRecord, ModelFolder
from .timing import (
    RUNTIMES,
    busy_note,
    find_runtime,
    load_per_core,
    time_beside,
    time_models,
)
from .weights import VIT, Pretrained, find_weights

# the most accurate first: DeiT-Tiny, ten draws of three images a class of
# leaf40_white, the other 322 are the test. A smaller image without reduction
# is as good there, and worse on images whose classes differ in details.
BY_SIDE = {224: 0.965, 208: 0.963, 192: 0.952, 160: 0.942, 144: 0.916}
SIDES = tuple(BY_SIDE)
ACCURACY = {
    Variant('EViT', 0.5, side, out_type='average'): accuracy
    for side, accuracy in BY_SIDE.items()
}
# what a variant is known by in fit.json
CHOSEN = ('method', 'keep_rate', 'img_size', 'out_type')
UNITS = {'gmacs': 'GMACs', 'ms': 'ms'}


@dataclass(frozen=True)
class Plan:
    """Hold what all steps of a fit are given."""

    call: dict
    files: ModelFolder
    checked: Checked
    pretrained: Pretrained
    variant: Variant
    config: Config  # of the variant, with as many classes as there are
    device: str

    @cached_property
    def training(self) -> Photographs:
        """Select the photographs to learn from."""
        photographs = self.checked.photographs
        return photographs.select(photographs.to_train())

    def facts(self) -> dict:
        """Return ``weights`` and ``model`` of the record."""
        found, own = self.pretrained, self.config.model.backbone
        model = {name: vars(self.variant)[name] for name in CHOSEN}
        model['layers'] = own.get('out_indices')
        model['depth'] = found.backbone['arch']['num_layers']
        weights = dict(name=found.name, source=found.source)
        return dict(weights=weights, model=model)


def make_plan(
    files: ModelFolder, record: FitRecord, checked: Checked, device: str | None
) -> Plan:
    """Find the weights and choose the model, or take those of the record.

    Milliseconds are measured anew in each call, and are never the same.
    """
    device = device or ('cuda' if torch.cuda.is_available() else 'cpu')
    call, number = record.call, len(checked.photographs.classes)
    source = record.weights['source'] if record.weights else call['weights']
    found = find_weights(source, call['pixels'])
    if record.model:
        variant = Variant(**{name: record.model[name] for name in CHOSEN})
    else:
        limits = call['budget'], call['runtime']
        variant = choose_model(found, number, *limits, device)
    config = classifier_config(found, variant, number)
    return Plan(call, files, checked, found, variant, config, device)


def choose_model(
    found: Pretrained,
    number: int,
    budget: str | None,
    runtime: str | None,
    device: str,
) -> Variant:
    """Choose the first candidate that the budget allows.

    ``number`` is that of the classes.
    """
    candidates = candidates_of(found.backbone)
    if budget is None:
        return candidates[0]
    amount, unit = parse_budget(budget)
    models = {x: classifier_config(found, x, number).model for x in candidates}
    if unit == 'ms':
        runtime = find_runtime(runtime, device)
        times = time_models(models, runtime, device)
        costs = {one: found['ms'] for one, found in times.items()}
        spread = max(found['spread'] for found in times.values())
        note = busy_note(spread, load_per_core())
        return choose(costs, amount, unit, f' in {RUNTIMES[runtime]}{note}')
    costs = {one: count_config(x).flops / 1e9 for one, x in models.items()}
    return choose(costs, amount, unit)


def candidates_of(backbone: dict) -> tuple[Variant, ...]:
    """List the models to choose from, the most accurate or largest first.

    Of the settings that weights are of; those with an ``img_size`` take no
    other one.
    """
    if backbone['type'] == VIT:
        return tuple(ACCURACY)
    sides = (backbone['img_size'],) if 'img_size' in backbone else SIDES
    return tuple(Variant(None, 1.0, side) for side in sides)


def words(variant: Variant) -> str:
    """Describe a candidate: its reduction, or that all of it is read."""
    reduced = f'{variant.method} keep rate {variant.keep_rate}'
    kind = reduced if variant.method else 'the whole network'
    return f'{kind}, {variant.img_size} px'


def classifier_config(
    pretrained: Pretrained, variant: Variant, num_classes: int
) -> Config:
    """Write the config of a candidate: its model and test pipeline."""
    plain = plain_model(pretrained, variant.img_size, num_classes)
    pipeline = evaluation_pipeline(variant.img_size)
    loader = dict(dataset=dict(type='CustomDataset', pipeline=pipeline))
    settings = dict(model=variant.apply(plain), test_dataloader=loader)
    return Config(dict(default_scope='mmpretrain', **settings))


def plain_model(found: Pretrained, img_size: int, num_classes: int) -> dict:
    """Write the config of the whole network with a linear head."""
    kind, backbone = 'ImageClassifier', dict(found.backbone, img_size=img_size)
    if backbone['type'] == VIT:
        kind = 'mmclca.TokenReductionClassifier'
    mean, std = map(list, found.pixels)
    pixels = dict(mean=mean, std=std, to_rgb=True)
    sizes = dict(in_channels=backbone['arch']['embed_dims'])
    head = dict(type='LinearClsHead', num_classes=num_classes, **sizes)
    return dict(
        type=kind, data_preprocessor=pixels, backbone=backbone, head=head
    )


def cost_of(plan: Plan) -> dict:
    """Count the model and the whole network, for ``cost`` of the record."""
    here, full = map(count_config, (plan.config.model, whole_network(plan)))
    return dict(
        gmacs=here.flops / 1e9, gmacs_full=full.flops / 1e9, params=here.params
    )


def time_of(plan: Plan) -> dict:
    """Time the model and the whole network, for ``cost`` of the record."""
    models = plan.config.model, whole_network(plan)
    return time_beside(*models, plan.call['runtime'], plan.device)


def whole_network(plan: Plan) -> dict:
    """Return the config of the network without reduction or early end."""
    if plan.variant.out_type is None:
        return plan.config.model
    size = plan.variant.img_size, len(plan.training.classes)
    return plain_model(plan.pretrained, *size)


def parse_budget(text: str) -> tuple[float, str]:
    """Read a budget such as ``0.5GMACs`` or ``20ms`` (at batch 1).

    GMACs are 1e9 multiply-accumulates; times are those of this machine, in
    the runtime of the call.
    """
    found = re.fullmatch(r'(\d+\.?\d*|\.\d+) ?([a-z]+)', text.strip().lower())
    if not found or found[2] not in UNITS or not float(found[1]):
        raise ValueError(
            f'budget {text!r}: a number above 0 with its unit, such as '
            '0.5GMACs or 20ms'
        )
    return float(found[1]), UNITS[found[2]]


def choose(
    costs: Mapping[Variant, float], amount: float, unit: str, note: str = ''
) -> Variant:
    """Choose the first of some models that costs no more than an amount.

    ``note`` ends the error where none does.
    """
    for candidate, cost in costs.items():
        if cost <= amount:
            return candidate
    cheapest = min(costs, key=costs.get)
    # rounded up, so that it can be given as it is printed
    enough = ceil(1000 * costs[cheapest]) / 1000
    raise ValueError(
        f'budget {amount:g}{unit}: no model is that cheap; the least is '
        f'{enough:g} {unit} ({words(cheapest)}){note}'
    )
