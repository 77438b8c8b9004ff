# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The models that fit chooses from, and what they cost."""

import re
from collections.abc import Mapping
from math import ceil

import torch
from mmengine.config import Config

from mmclca.benchmark.setting import Setting
from mmclca.benchmark.steps import median_milliseconds, steps_of
from mmclca.datasets.pipelines import evaluation_pipeline
from mmclca.evaluation.cost import count_config
from mmclca.models import Variant
from mmclca.utils.provenance import cpu_name

from .architecture import VIT
from .weights import Pretrained

# the most accurate first: DeiT-Tiny, ten draws of three images a class of
# leaf40_white, the other 322 are the test. A smaller image without reduction
# is as good there, and worse on images whose classes differ in details.
ACCURACY = {
    Variant('EViT', 0.5, side, out_type='average'): accuracy
    for side, accuracy in (
        (224, 0.965),
        (208, 0.963),
        (192, 0.952),
        (160, 0.942),
        (144, 0.916),
    )
}
SIDES = tuple(variant.img_size for variant in ACCURACY)
ROUNDS = 9
UNITS = {'gmacs': 'GMACs', 'ms': 'ms'}


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
    kind = 'the whole network'
    if variant.method is not None:
        kind = f'{variant.method} keep rate {variant.keep_rate}'
    return f'{kind}, {variant.img_size} px'


def classifier_config(
    pretrained: Pretrained, variant: Variant, num_classes: int
) -> Config:
    """Write the config of a candidate: its model and test pipeline."""
    plain = plain_model(pretrained, variant.img_size, num_classes)
    pipeline = evaluation_pipeline(variant.img_size)
    dataset = dict(type='CustomDataset', pipeline=pipeline)
    return Config(
        dict(
            default_scope='mmpretrain',
            model=variant.apply(plain),
            test_dataloader=dict(dataset=dataset),
        )
    )


def plain_model(
    pretrained: Pretrained, img_size: int, num_classes: int
) -> dict:
    """Write the config of the whole network with a linear head."""
    backbone = dict(pretrained.backbone, img_size=img_size)
    reducible = backbone['type'] == VIT
    return dict(
        type='mmclca.TokenReductionClassifier'
        if reducible
        else 'ImageClassifier',
        data_preprocessor=dict(
            mean=[*pretrained.mean], std=[*pretrained.std], to_rgb=True
        ),
        backbone=backbone,
        head=dict(
            type='LinearClsHead',
            num_classes=num_classes,
            in_channels=backbone['arch']['embed_dims'],
        ),
    )


def cost_of(model: dict, full: dict, device: str) -> dict:
    """Count and time a model beside the whole network, if that is another."""
    models = [model] if model == full else [model, full]
    counted = [count_config(one) for one in models]
    times = [*milliseconds(dict(enumerate(models)), device).values()]
    return dict(
        gmacs=counted[0].flops / 1e9,
        gmacs_full=counted[-1].flops / 1e9,
        params=counted[0].params,
        ms=times[0],
        ms_full=times[-1],
        machine=_machine_name(device),
    )


def milliseconds(
    models: Mapping[str, dict], device: str, rounds: int = ROUNDS
) -> dict[str, float]:
    """Time one image, interleaved, at batch 1: the median by the name."""
    threads = torch.get_num_threads()
    setting = Setting(device=device, threads=threads, batch=1)
    return median_milliseconds(steps_of(models, setting), setting, rounds)


def _machine_name(device: str) -> str:
    if torch.device(device).type == 'cuda':
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f'{cpu_name()}, {threads} thread{"s" * (threads > 1)}'


def parse_budget(text: str) -> tuple[float, str]:
    """Read a budget such as ``0.5GMACs`` or ``20ms`` (at batch 1).

    GMACs are 1e9 multiply-accumulates; times are those of this machine.
    """
    found = re.fullmatch(r'(\d+\.?\d*|\.\d+) ?([a-z]+)', text.strip().lower())
    if not found or found[2] not in UNITS or not float(found[1]):
        raise ValueError(
            f'budget {text!r}: a number above 0 with its unit, such as '
            '0.5GMACs or 20ms'
        )
    return float(found[1]), UNITS[found[2]]


def costs_in(
    unit: str, models: Mapping[Variant, dict], device: str
) -> dict[Variant, float]:
    """Count or time some models, by the unit of a budget."""
    if unit == 'ms':
        return milliseconds(models, device)
    return {one: count_config(x).flops / 1e9 for one, x in models.items()}


def choose(costs: Mapping[Variant, float], amount: float, unit: str):
    """Choose the first of some models that costs no more than an amount."""
    for candidate, cost in costs.items():
        if cost <= amount:
            return candidate
    cheapest = min(costs, key=costs.get)
    # rounded up, so that it can be given as it is printed
    enough = ceil(1000 * costs[cheapest]) / 1000
    raise ValueError(
        f'budget {amount:g}{unit}: no model is that cheap; the least is '
        f'{enough:g} {unit} ({words(cheapest)})'
    )
