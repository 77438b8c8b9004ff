# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Select the model for the budget and build its config."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf

import torch
from mmengine.config import Config
from torch import Tensor

from mmclca.apis import Probe
from mmclca.apis.loading import config_and_weights
from mmclca.benchmark.timing import RUNTIMES, find_runtime, time_models
from mmclca.datasets.photographs import Checked, LabeledImages
from mmclca.datasets.pipelines import evaluation_pipeline
from mmclca.evaluation.cost import count_config
from mmclca.models import Variant
from mmclca.utils.provenance import machine_name

from .record import FitRecord, ModelFolder
from .weights import PIXELS, VIT, Pretrained, find_weights

# a backbone that takes other image sizes is offered in these
SIDES = (224, 208, 192, 160, 144)
# what is read of a transformer: all tokens after each layer, or half of them
# after the first three quarters
ALL = dict(method=None, keep_rate=1.0, out_type='cls_std')
ATC = dict(method='ATC', keep_rate=0.5, out_type='cls_average_std')
DIFF_RATE = dict(ATC, method='DiffRate')
# sides of images, and accuracy in % of a probe: mean of nine sets, five draws
# of three photographs a class, docs/results/few_photographs.md. With DeiT-Tiny
# DiffRate comes after ATC, for it loses more in some sets.
DEIT = (
    *((ALL, 224, 74.9), (ATC, 224, 74.6), (DIFF_RATE, 224, 75.2)),
    *((DIFF_RATE, 192, 74.0), (ATC, 192, 73.6), (ALL, 160, 72.5)),
    *((ATC, 160, 71.7), (DIFF_RATE, 160, 71.1), (ATC, 128, 67.5)),
)
# with ViT-Tiny, whose pixels are normalized otherwise
VIT_TINY = (
    *((ALL, 224, 77.2), (DIFF_RATE, 224, 76.0), (ALL, 160, 75.9)),
    *((ATC, 224, 75.3), (DIFF_RATE, 192, 75.2), (ATC, 192, 74.2)),
    *((DIFF_RATE, 160, 73.4), (ATC, 160, 72.9), (ATC, 128, 70.6)),
)
# what a variant is known by in fit.json
VARIANT_FIELDS = ('method', 'keep_rate', 'img_size', 'out_type', 'layers')
# with the middle that is read of a photograph views of it show 75 and 60 % of
# the height and width
ZOOMS, FEW = (7 / 6, 35 / 24), 300  # more take long, and gain less
BEST = 'best'  # the budget that allows whatever it costs
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
    def training(self) -> LabeledImages:
        """Select the photographs to learn from."""
        photographs = self.checked.photographs
        return photographs.select(photographs.to_train())

    @cached_property
    def held_out(self) -> LabeledImages:
        """Select the photos in val and test folders."""
        return self.checked.photographs.without({*self.training.paths})

    @property
    def zooms(self) -> tuple[float, ...]:
        """Further views of the photographs to learn from, if these are few."""
        return ZOOMS if len(self.training) <= FEW else ()

    @cached_property
    def probe(self) -> Probe:
        """Build the pretrained network; its features are cached, and
        photographs to learn from are seen in several views."""
        return self.probe_of(self.config, self.pretrained.source)

    def probe_of(self, model, weights: str | None = None) -> Probe:
        """Build another network; see :attr:`probe`."""
        return Probe(
            model,
            weights,
            self.device,
            self.files.features,
            zooms=self.zooms,
            digests=self.checked.digests,
            unopened=self.checked.unopened,
        )

    @cached_property
    def views(self) -> Tensor:
        """Extract pretrained features (N, V, D) of ``training``."""
        return self.probe.views(self.training.paths)[0]

    def facts(self) -> dict:
        """Return ``weights`` and ``model`` of the record."""
        found, own = self.pretrained, self.config.model.backbone
        model = {name: vars(self.variant)[name] for name in VARIANT_FIELDS}
        model['layers'] = own.get('out_indices')
        model['depth'] = found.backbone['arch']['num_layers']
        weights = dict(name=found.name, source=found.source)
        return dict(weights=weights, model=model)


def make_plan(
    files: ModelFolder, record: FitRecord, checked: Checked, device: str | None
) -> Plan:
    """Find the weights and choose the model, or take that of the record.

    Where known photographs are not opened, the network is that of the folder.
    Milliseconds are measured anew in each call, and are never the same.
    """
    device = device or ('cuda' if torch.cuda.is_available() else 'cpu')
    call, number = record.call, len(checked.photographs.classes)
    variant = _variant_of(record) if record.model else None
    if checked.unopened:
        found, config = _read_from_folder(files, record)
        return Plan(call, files, checked, found, variant, config, device)
    found = find_weights(call['weights'], call['pixels'])
    if variant is None:
        limits = call['budget'], call['runtime']
        variant = choose_model(found, number, *limits, device)
    config = classifier_config(found, variant, number)
    return Plan(call, files, checked, found, variant, config, device)


def _variant_of(record: FitRecord) -> Variant:
    chosen = {name: record.model[name] for name in VARIANT_FIELDS}
    layers = chosen['layers'] and tuple(chosen['layers'])
    return Variant(**dict(chosen, layers=layers))


def _read_from_folder(
    files: ModelFolder, record: FitRecord
) -> tuple[Pretrained, Config]:
    """Read the network of a model from its folder alone.

    fit.json of a folder from elsewhere may name any file or address.
    """
    config, _ = config_and_weights(files.probe, None)
    backbone = config.model.backbone.to_dict()
    # the last layers are left out of some models
    backbone['arch'] |= dict(num_layers=record.model['depth'])
    name, pixels = record.weights['name'], PIXELS['imagenet']
    source = str(files.probe)
    return Pretrained(name, source, backbone, pixels, notes=()), config


def choose_model(
    found: Pretrained,
    number: int,
    budget: str | None,
    runtime: str | None,
    device: str,
) -> Variant:
    """Choose the first candidate that the budget allows.

    Without a budget a transformer may cost half of what all of it costs.
    ``number`` is that of the classes.
    """
    candidates = candidates_of(found)
    if budget is None and found.backbone['type'] != VIT:
        return candidates[0]
    models = {x: classifier_config(found, x, number).model for x in candidates}
    amount, unit = parse_budget(budget) if budget else (None, 'GMACs')
    if unit == 'ms':
        runtime = find_runtime(runtime, device)
        times, busy = time_models(models, runtime, device)
        note = f' in {RUNTIMES[runtime]}{busy}'
        return choose(times.items(), amount, unit, note)
    # counted one after another, until one is within the budget
    costs = ((x, count_config(own).flops / 1e9) for x, own in models.items())
    if budget is None:
        amount = next(costs)[1] / 2
    return choose(costs, amount, unit)


def candidates_of(found: Pretrained) -> tuple[Variant, ...]:
    """List the models to choose from, the one to prefer first: the most
    accurate or largest, as in ``DEIT`` and ``VIT_TINY``.

    Backbones with an ``img_size`` take no other one.
    """
    backbone = found.backbone
    if backbone['type'] == VIT:
        return tuple(accuracies_of(found))
    sides = (backbone['img_size'],) if 'img_size' in backbone else SIDES
    return tuple(Variant(None, 1.0, side) for side in sides)


def accuracies_of(found: Pretrained) -> dict[Variant, float]:
    """Look up what candidates have reached with weights of like kind, in %."""
    table = VIT_TINY if found.pixels == PIXELS['half'] else DEIT
    every = tuple(range(found.backbone['arch']['num_layers']))
    layers = {True: every, False: None}
    return {
        Variant(**kind, img_size=side, layers=layers[kind is ALL]): accuracy
        for kind, side, accuracy in table
    }


def describe(variant: Variant) -> str:
    """Describe a candidate: its reduction method and image size."""
    kind = 'full ViT' if variant.out_type else 'full network'
    if variant.method:
        kind = f'{variant.method}, keep rate {variant.keep_rate}'
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


def compute_cost(plan: Plan) -> dict:
    """Count the model and the whole network, for ``cost`` of the record."""
    counted = [count_config(one) for one in _with_full_vit(plan)]
    gmacs, gmacs_full = (counted[i].flops / 1e9 for i in (0, -1))
    params = counted[0].params
    return dict(gmacs=gmacs, gmacs_full=gmacs_full, params=params)


def measure_latency(plan: Plan) -> dict:
    """Time the model and the whole network, for ``cost`` of the record."""
    runtime = find_runtime(plan.call['runtime'], plan.device)
    models = dict(enumerate(_with_full_vit(plan)))
    times, busy = time_models(models, runtime, plan.device)
    return dict(
        ms=times[0],
        ms_full=times[len(times) - 1],
        runtime=RUNTIMES[runtime],
        busy=busy,
        machine=machine_name('cpu' if runtime == 'onnx' else plan.device),
    )


def _with_full_vit(plan: Plan) -> list[dict]:
    """Return the model and the whole network, if that is another."""
    models = [plan.config.model]
    if plan.variant.out_type:
        size = max(SIDES), len(plan.training.classes)
        models.append(plain_model(plan.pretrained, *size))
    return models


def parse_budget(text: str) -> tuple[float, str]:
    """Read a budget such as ``0.5GMACs`` or ``20ms`` (at batch 1).

    GMACs are 1e9 multiply-accumulates; times are those of this machine, in
    the runtime of the call; 'best' is endless GMACs.
    """
    text = text.strip().lower()
    if text == BEST:
        return inf, 'GMACs'
    found = re.fullmatch(r'(\d+\.?\d*|\.\d+) ?([a-z]+)', text)
    if not found or found[2] not in UNITS or not float(found[1]):
        raise ValueError(
            f'budget {text!r} is invalid: expected a number above 0 with '
            f'its unit, such as 0.5GMACs or 20ms, or {BEST}'
        )
    return float(found[1]), UNITS[found[2]]


def choose(
    costs: Iterable, amount: float, unit: str, note: str = ''
) -> Variant:
    """Choose the first of pairs of a model and its cost that costs no more
    than an amount; ``note`` ends the error where none does."""
    seen = {}
    for candidate, cost in costs:
        if cost <= amount:
            return candidate
        seen[candidate] = cost
    cheapest = min(seen, key=seen.get)
    # rounded up, so that it can be given as it is printed
    enough = ceil(1000 * seen[cheapest]) / 1000
    raise ValueError(
        f'budget {amount:g}{unit}: no model fits; the cheapest needs '
        f'{enough:g} {unit} ({describe(cheapest)}){note}'
    )
