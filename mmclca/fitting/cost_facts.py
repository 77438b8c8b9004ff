# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the model of a fit costs, beside the whole network."""

from mmclca.evaluation.cost import count_config

from .classifier import plain_model
from .costs import machine_name, milliseconds
from .job import Job

OWN, FULL = '', '_full'


def measure_costs(job: Job) -> None:
    """Count and time both, unless that was done.

    Args:
        job (Job): The fit; its facts get ``cost``.
    """
    cost, img_size = job.facts['cost'], job.candidate.img_size
    models = {OWN: job.config.model}
    if not job.candidate.whole:
        number = len(job.classes)
        models[FULL] = plain_model(job.pretrained, img_size, number)
    if cost['gmacs'] is None:
        counted = {name: count_config(x) for name, x in models.items()}
        cost.update(
            _named('gmacs', {n: c.flops / 1e9 for n, c in counted.items()})
        )
        cost['params'] = counted[OWN].params
        cost.update(_named('ms', milliseconds(models, job.device)))
        cost['machine'] = machine_name(job.device)
    job.save()


def _named(name: str, values: dict) -> dict:
    """Of the model, and of the whole network where that is another one."""
    values = {FULL: values[OWN], **values}
    return {f'{name}{which}': value for which, value in values.items()}
