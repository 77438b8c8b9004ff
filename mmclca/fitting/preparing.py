# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What is looked at before anything is written: photographs and model."""

from collections.abc import Sequence
from functools import partial
from os import PathLike

import torch
from mmengine.config import Config

from mmclca.datasets.photographs import (
    Checked,
    check_photographs,
    read_photographs,
)
from mmclca.models import Variant

from .candidates import candidates_of, choose, parse_budget
from .classifier import classifier_config
from .costs import gmacs, milliseconds
from .facts import new_facts
from .job import Job
from .model_folder import ModelFolder
from .quiet import Log
from .weights import Pretrained, find_weights


def prepare(
    call: dict,
    out: str | PathLike,
    overwrite: bool,
    device: str | None,
    log: Log,
) -> Job:
    """Check what came, and choose the model.

    Args:
        call (dict): The settings of :func:`mmclca.fitting.fit` that make a
            model what it is, by name.
        out (str | Path): Folder of the model.
        overwrite (bool): Whether what another call left there goes.
        device (str, optional): See :func:`job_of`.
        log (Log): Where lines go.

    Raises:
        FileNotFoundError: If photographs or weights are not there.
        ValueError: If they are of no use, the folder is of another call, or
            the budget is met by no model.
    """
    if call['budget'] is not None:
        parse_budget(call['budget'])
    folder = ModelFolder(out)
    found = read_photographs(
        call['photographs'], call['labels'], call['groups']
    )
    checked = check_photographs(found)
    facts = new_facts(call, checked)
    known = None if overwrite else folder.known(facts)
    job = job_of(folder, known or facts, checked, device, log)
    if overwrite:
        folder.clear()
    folder.remove_partial_files()
    job.save()  # before all, so that the folder is known for this call's
    log.open(folder.log)
    return job


def job_of(
    folder: ModelFolder,
    facts: dict,
    checked: Checked,
    device: str | None,
    log: Log,
) -> Job:
    """A fit with its model, which an earlier call may have chosen.

    Args:
        folder (ModelFolder): Where its files lie.
        facts (dict): Of fit.json, or new ones.
        checked (Checked): The photographs.
        device (str, optional): Where the model runs; None: on a GPU where
            there is one.
        log (Log): Where lines go.

    Raises:
        FileNotFoundError: If the weights are not there.
        ValueError: If they are of no use, or the budget is met by no model.
    """
    device = device or ('cuda' if torch.cuda.is_available() else 'cpu')
    call = facts['call']
    pretrained = find_weights(
        facts['weights']['source'] or call['weights'], call['pixels']
    )
    number = len(checked.photographs.classes)
    candidates = candidates_of(pretrained.backbone)
    variant = variant_of(facts, candidates) or choose(
        candidates,
        call['budget'] and parse_budget(call['budget']),
        partial(costs_of, pretrained, number, device),
    )
    config = classifier_config(pretrained, variant, number)
    facts = facts | described(pretrained, config, variant)
    return Job(
        folder, facts, checked, pretrained, variant, config, device, log
    )


def variant_of(facts: dict, candidates: Sequence[Variant]) -> Variant | None:
    """The model that an earlier call has chosen, None without one.

    Milliseconds are measured anew in each call, and are never the same.

    Args:
        facts (dict): Of fit.json.
        candidates (Sequence[Variant]): Those that it was chosen from.
    """
    model = facts['model']
    known = {(c.method, c.keep_rate, c.img_size): c for c in candidates}
    return known.get((model['method'], model['keep_rate'], model['img_size']))


def described(
    pretrained: Pretrained, config: Config, variant: Variant
) -> dict:
    """What fit.json says of a model and its weights.

    Args:
        pretrained (Pretrained): The weights.
        config (Config): Of the model.
        variant (Variant): The model.
    """
    backbone = config.model.backbone
    return dict(
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


def costs_of(
    pretrained: Pretrained, num_classes: int, device: str, unit: str
) -> list[float]:
    """What each variant costs.

    Args:
        pretrained (Pretrained): The weights.
        num_classes (int): Classes of the head.
        device (str): Where the model runs.
        unit (str): 'GMACs' or 'ms'.
    """
    models = {
        variant: classifier_config(pretrained, variant, num_classes).model
        for variant in candidates_of(pretrained.backbone)
    }
    if unit == 'ms':
        return [*milliseconds(models, device).values()]
    return [*map(gmacs, models.values())]
