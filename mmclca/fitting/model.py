# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Select the model for the budget and build its config."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from pathlib import Path

import torch
from mmengine.config import Config
from torch import Tensor

from mmclca.apis import Probe
from mmclca.apis.loading import config_and_weights
from mmclca.benchmark.timing import RUNTIMES, find_runtime, time_models
from mmclca.datasets.photos import LabeledImages, PhotoCheck
from mmclca.datasets.pipelines import evaluation_pipeline
from mmclca.evaluation.cost import count_config
from mmclca.models import Variant
from mmclca.models.head_variants import build_on_meta
from mmclca.utils.provenance import machine_name

from .budget import BudgetError, parse_budget
from .record import FitFolder, FitRecord
from .weights import PIXELS, VIT, Pretrained, find_weights

# image sizes of candidates without token reduction
IMAGE_SIZES = (224, 208, 192, 160, 144, 128)
# NO_REDUCTION keeps every token, ATC and DiffRate keep half
NO_REDUCTION = dict(method=None, keep_rate=1.0, out_type='cls_average_std')
ATC = dict(NO_REDUCTION, method='ATC', keep_rate=0.5)
DIFF_RATE = dict(ATC, method='DiffRate')
# candidates, image size and accuracy of the probe in %: mean over eleven
# datasets and five random splits with three photos per class, see
# docs/results/frontier.md. With DeiT-Tiny, DiffRate comes after ATC because
# it loses more on some datasets.
DEIT = (
    *((NO_REDUCTION, 224, 72.4), (ATC, 224, 71.7), (DIFF_RATE, 224, 72.4)),
    *((DIFF_RATE, 192, 71.4), (ATC, 192, 70.5), (NO_REDUCTION, 160, 69.6)),
    *((ATC, 160, 68.7), (DIFF_RATE, 160, 68.2), (ATC, 128, 63.5)),
)
# the same for ViT-Tiny, which normalizes pixels with 0.5
VIT_TINY = (
    *((NO_REDUCTION, 224, 75.8), (DIFF_RATE, 224, 75.2), (ATC, 224, 74.4)),
    *((NO_REDUCTION, 160, 74.2), (ATC, 192, 74.0), (DIFF_RATE, 192, 73.7)),
    *((ATC, 160, 72.2), (DIFF_RATE, 160, 71.9), (ATC, 128, 68.4)),
)
# variant in fit.json
VARIANT_FIELDS = ('method', 'keep_rate', 'img_size', 'out_type', 'layers')
# after the center crop, zoomed views show 75 and 60% of height and width;
# with more than MAX_PHOTOS_FOR_CROPS photos they take long and gain less
CROP_ZOOMS, MAX_PHOTOS_FOR_CROPS = (7 / 6, 35 / 24), 300
SKIP_FACTOR = 1.5  # times the latency budget: candidates are not measured


@dataclass(frozen=True)
class Plan:
    """Inputs to all steps."""

    call: dict
    files: FitFolder
    checked: PhotoCheck
    pretrained: Pretrained
    variant: Variant
    config: Config  # variant with the classes of the photos
    device: str
    cost: float | None = None  # in the unit of the budget

    @property
    def training(self) -> LabeledImages:
        """Training photos, whose groups change if near-duplicates join."""
        photos = self.checked.photos
        return photos.select(photos.to_train())

    @cached_property
    def held_out(self) -> LabeledImages:
        """Photos in val and test folders."""
        return self.checked.photos.without({*self.training.paths})

    @property
    def zooms(self) -> tuple[float, ...]:
        """Zoom factors of further views, if there are few training photos."""
        return CROP_ZOOMS if len(self.training) <= MAX_PHOTOS_FOR_CROPS else ()

    @cached_property
    def probe(self) -> Probe:
        """Probe on the pretrained backbone, with cached features."""
        features = self.files.features
        return self.probe_of(self.config, self.pretrained.source, features)

    def probe_of(
        self, model, weights: str | None = None, features: Path | None = None
    ) -> Probe:
        """Build a probe on a model, with features stored in a folder."""
        return Probe(
            model,
            weights,
            self.device,
            features,
            zooms=self.zooms,
            digests=self.checked.digests,
            unopened=self.checked.unopened,
        )

    @cached_property
    def views(self) -> Tensor:
        """Pretrained features (N, V, D) of training photos and their views."""
        return self.probe.views(self.training.paths)[0]

    def facts(self) -> dict:
        """Return ``weights`` and ``model`` of the record."""
        found, own = self.pretrained, self.config.model.backbone
        model = {name: vars(self.variant)[name] for name in VARIANT_FIELDS}
        model['layers'] = own.get('out_indices')
        model['depth'] = found.depth
        weights = dict(name=found.name, source=found.source)
        return dict(weights=weights, model=model)


def make_plan(
    files: FitFolder,
    record: FitRecord,
    checked: PhotoCheck,
    device: str | None,
) -> Plan:
    """Find the weights and select the model.

    A resumed fit keeps the recorded model, since a latency budget could
    select another one in each run. If known photos must not be opened, the
    network is read from the model folder.
    """
    device = device or ('cuda' if torch.cuda.is_available() else 'cpu')
    call, number = record.call, len(checked.photos.classes)
    variant, cost = _variant_of(record) if record.model else None, None
    if checked.unopened:
        found, config = _read_from_folder(files, record)
        return Plan(call, files, checked, found, variant, config, device)
    found = find_weights(call['weights'], call['pixels'], call.get('arch'))
    if variant is None:
        limits = call['budget'], call['runtime']
        variant, cost = choose_model(found, number, *limits, device)
    config = classifier_config(found, variant, number)
    return Plan(call, files, checked, found, variant, config, device, cost)


def _variant_of(record: FitRecord) -> Variant:
    chosen = {name: record.model[name] for name in VARIANT_FIELDS}
    layers = chosen['layers'] and tuple(chosen['layers'])
    return Variant(**dict(chosen, layers=layers))


def _read_from_folder(
    files: FitFolder, record: FitRecord
) -> tuple[Pretrained, Config]:
    """Read the network from the model folder only.

    The weights in fit.json are not opened: a folder from elsewhere may name
    any file or address.
    """
    config, _ = config_and_weights(files.probe, None)
    backbone = config.model.backbone.to_dict()
    # some models omit the last layers
    if record.model['depth'] is not None:
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
) -> tuple[Variant, float | None]:
    """Select the first candidate within the budget, and return its cost.

    Without a budget, it is the first one with token reduction, at about half
    the cost of the full ViT. ``number`` is the number of classes.
    """
    candidates = candidates_of(found)
    if budget is None:
        return next((x for x in candidates if x.method), candidates[0]), None
    models = {x: classifier_config(found, x, number).model for x in candidates}
    amount, unit = parse_budget(budget)
    # lazy: counting stops at the first candidate within the budget
    costs = ((x, count_config(own).flops / 1e9) for x, own in models.items())
    if unit == 'GMACs':
        return choose(((*pair, '') for pair in costs), amount, unit)
    place = find_runtime(runtime, device), device
    return choose(_latencies(models, costs, amount, *place), amount, unit)


def _latencies(
    models: dict, costs: Iterable, amount: float, runtime: str, device: str
) -> Iterator[tuple[Variant, float, str]]:
    """Yield each candidate, its latency in milliseconds, and a note.

    If the latency is expected to be far above the budget from that of another
    candidate, it is not measured: exporting a network can take half a minute.
    """
    pace = 0.0  # milliseconds per GMACs
    for candidate, gmacs in costs:
        if pace * gmacs < SKIP_FACTOR * amount:
            own = {candidate: models[candidate]}
            times, busy = time_models(own, runtime, device)
            pace = times[candidate] / gmacs
        yield candidate, pace * gmacs, f' in {RUNTIMES[runtime]}{busy}'


def candidates_of(found: Pretrained) -> tuple[Variant, ...]:
    """List the candidates, the preferred one first.

    A ViT has the rows of ``DEIT`` or ``VIT_TINY``, other networks their full
    model at the image sizes they support, the largest first.
    """
    backbone = found.backbone
    if backbone['type'] == VIT:
        return tuple(accuracies_of(found))
    sides = (backbone['img_size'],) if 'img_size' in backbone else IMAGE_SIZES
    return tuple(Variant(None, 1.0, side) for side in sides)


def accuracies_of(found: Pretrained) -> dict[Variant, float]:
    """Look up the accuracy (%) of ViT candidates with similar weights."""
    table = VIT_TINY if found.pixels == PIXELS['half'] else DEIT
    every = tuple(range(found.backbone['arch']['num_layers']))
    return {
        Variant(**kind, img_size=side, layers=every): accuracy
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
    """Build the config of a candidate: its model and test pipeline."""
    plain = plain_model(pretrained, variant.img_size, num_classes)
    pipeline = evaluation_pipeline(variant.img_size)
    loader = dict(dataset=dict(type='CustomDataset', pipeline=pipeline))
    settings = dict(model=variant.apply(plain), test_dataloader=loader)
    return Config(dict(default_scope='mmpretrain', **settings))


def plain_model(found: Pretrained, img_size: int, num_classes: int) -> dict:
    """Build the model config of the full network with a linear head."""
    kind, backbone = 'ImageClassifier', dict(found.backbone, img_size=img_size)
    if backbone['type'] == VIT:
        kind = 'mmclca.TokenReductionClassifier'
    mean, std = map(list, found.pixels)
    pixels = dict(mean=mean, std=std, to_rgb=True)
    head = dict(_head(found, backbone), num_classes=num_classes)
    return dict(
        type=kind, data_preprocessor=pixels, backbone=backbone, head=head
    )


def _head(found: Pretrained, backbone: dict) -> dict:
    """Return the head: linear, or over all stages of a network of timm."""
    if not found.is_of_timm:
        sizes = dict(in_channels=backbone['arch']['embed_dims'])
        return dict(type='LinearClsHead', **sizes)
    channels = build_on_meta(backbone).channels
    sizes = dict(in_channels=channels, num_layers=len(channels), num_parts=2)
    return dict(type='mmclca.LayerFusionHead', **sizes)


def compute_cost(plan: Plan) -> dict:
    """Count GMACs and parameters, and the GMACs of the full ViT."""
    counted = [count_config(one) for one in _with_full_vit(plan)]
    gmacs, gmacs_full = (counted[i].flops / 1e9 for i in (0, -1))
    params = counted[0].params
    return dict(gmacs=gmacs, gmacs_full=gmacs_full, params=params)


def measure_latency(plan: Plan) -> dict:
    """Measure the latency of the model and the full ViT."""
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
    """Return the model config and, for a ViT, the config of the full ViT."""
    models = [plan.config.model]
    if plan.variant.out_type:
        size = max(IMAGE_SIZES), len(plan.training.classes)
        models.append(plain_model(plan.pretrained, *size))
    return models


def choose(
    costs: Iterable[tuple], amount: float, unit: str
) -> tuple[Variant, float]:
    """Select the first model within the budget from (model, cost, note).

    A cost of at most 1% more is within it: 160 px need 0.301 GMACs.
    If all models cost too much, the ``BudgetError`` ends with the note.
    """
    seen = {}
    for candidate, cost, note in costs:
        if cost <= 1.01 * amount:
            return candidate, cost
        seen[candidate] = cost, note
    cheapest = min(seen, key=seen.get)
    cost, note = seen[cheapest]
    # rounded up, to be valid as a budget
    enough = ceil(1000 * cost) / 1000
    raise BudgetError(
        f'budget {amount:g}{unit}: no model fits; the cheapest needs '
        f'{enough:g} {unit} ({describe(cheapest)}){note}'
    )
