# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A fit before its first step: photographs are checked, a model chosen."""

from dataclasses import dataclass, replace
from os import PathLike

import torch
from mmengine.config import Config

from mmclca.datasets.photographs import (
    Checked,
    Photographs,
    check_photographs,
    read_photographs,
)
from mmclca.models import Variant

from .model import (
    candidates_of,
    choose,
    classifier_config,
    costs_in,
    parse_budget,
)
from .record import FitRecord, ModelFolder
from .screen import Log
from .weights import Pretrained, find_weights

# what a candidate is known by in fit.json
CHOSEN = ('method', 'keep_rate', 'img_size', 'out_type')


@dataclass
class Job:
    """Hold a fit, and what is known so far."""

    folder: ModelFolder
    record: FitRecord
    checked: Checked
    pretrained: Pretrained
    variant: Variant
    config: Config  # of the variant, with as many classes as there are
    device: str
    log: Log

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        return self.checked.photographs.classes

    @property
    def training(self) -> Photographs:
        """The photographs to learn from."""
        photographs = self.checked.photographs
        return photographs.select(photographs.to_train())

    @property
    def held_out(self) -> Photographs:
        """Those of val and test folders."""
        return self.checked.photographs.without({*self.training.paths})

    def tell(self, line: str) -> None:
        """Show the user a line."""
        self.log.tell_user(line)

    def add(self, **parts) -> None:
        """Replace parts of the record, and write it as a draft."""
        self.record = replace(self.record, **parts)
        self.folder.draft.write(self.record)

    def publish(self, **parts) -> None:
        """Do as :meth:`add`; the draft then takes the place of the model."""
        self.add(**parts)
        self.folder.publish()


def prepare(
    call: dict,
    out: str | PathLike,
    overwrite: bool,
    device: str | None,
    log: Log,
) -> Job:
    """Check what came and choose the model, before anything is written.

    ``call`` holds the settings of :func:`mmclca.fitting.fit` that make a
    model what it is, by name.
    """
    if call['budget'] is not None:
        parse_budget(call['budget'])
    folder = ModelFolder(out)
    checked = check_photographs(
        read_photographs(call['photographs'], call['labels'], call['groups'])
    )
    record = FitRecord.of_call(call, checked)
    known = None if overwrite else folder.known(record)
    job = make_job(folder, known or record, checked, device, log)
    if overwrite:
        folder.clear()
    folder.remove_partial_files()
    job.add()  # before all, so that the folder is known for this call's
    log.open(folder.log)
    return job


def make_job(
    folder: ModelFolder,
    record: FitRecord,
    checked: Checked,
    device: str | None,
    log: Log,
) -> Job:
    """Make a fit with its model, which an earlier call may have chosen."""
    device = device or ('cuda' if torch.cuda.is_available() else 'cpu')
    source = (record.weights or dict(source=record.call['weights']))['source']
    pretrained = find_weights(source, record.call['pixels'])
    number = len(checked.photographs.classes)
    variant = _variant(record, pretrained, number, device)
    config = classifier_config(pretrained, variant, number)
    backbone = config.model.backbone
    record = replace(
        record,
        weights=dict(name=pretrained.name, source=pretrained.source),
        model=dict(
            method=variant.method,
            keep_rate=variant.keep_rate,
            layers=backbone.get('out_indices'),
            out_type=backbone.get('out_type'),
            img_size=variant.img_size,
            depth=pretrained.backbone['arch']['num_layers'],
        ),
    )
    return Job(
        folder, record, checked, pretrained, variant, config, device, log
    )


def _variant(
    record: FitRecord, pretrained: Pretrained, number: int, device: str
) -> Variant:
    """Choose the model of an earlier call, else what the budget allows.

    Milliseconds are measured anew in each call, and are never the same.
    """
    if record.model:
        return Variant(**{name: record.model[name] for name in CHOSEN})
    candidates = candidates_of(pretrained.backbone)
    budget = record.call['budget']
    if budget is None:
        return candidates[0]
    models = {
        one: classifier_config(pretrained, one, number).model
        for one in candidates
    }
    amount, unit = parse_budget(budget)
    return choose(costs_in(unit, models, device), amount, unit)
