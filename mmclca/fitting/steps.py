# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The steps of a fit, one after the other."""

import os
import time
from os import PathLike

from .classifier import plain_model
from .costs import cost_of
from .fitted_model import FittedModel
from .improving import improve, measure
from .job import Job, prepare
from .probing import run_probe
from .report import write_report
from .screen import Log
from .words import say_accuracy, say_cost, say_end, say_start


def fit(
    photographs: str | PathLike,
    out: str | PathLike = 'model',
    budget: str | None = None,
    weights: str | None = None,
    labels: str | PathLike | None = None,
    groups: str | None = None,
    folds: int = 5,
    probe_only: bool = False,
    class_weights: str | None = None,
    overwrite: bool = False,
    pixels: str | None = None,
    device: str | None = None,
) -> FittedModel:
    """Fit a model to photographs, and say how good it is.

    First a classifier on the network as it came, in seconds; then, where
    that pays, the network is trained on from it. The same call resumes one
    that was interrupted.

    Args:
        photographs (str | Path): A folder with a folder a class in it, or
            with such folders in ``train``, ``val`` and ``test``, of which
            the last two are only measured on; see
            :func:`mmclca.datasets.photographs.read_photographs`.
        out (str | Path): Folder of the model. Defaults to 'model'.
        budget (str, optional): What a photograph may cost, such as
            '0.5GMACs' or '20ms' on this machine. Defaults to None: half of
            what the whole transformer costs.
        weights (str, optional): A file, or ``timm://NAME``. Defaults to
            None: DeiT-Tiny's of timm.
        labels (str | Path, optional): A table of file and class.
            Defaults to None: folders name the classes.
        groups (str, optional): What photographs of one thing have in common:
            a regular expression, or a column of the table. Defaults to None.
        folds (int): Parts of the estimate. Defaults to 5.
        probe_only (bool): Whether to leave the network as it came.
            Defaults to False.
        class_weights (str, optional): 'balanced' for classes that count
            alike. Defaults to None: photographs count alike.
        overwrite (bool): Whether to replace what another call has written.
            Defaults to False.
        pixels (str, optional): 'imagenet' or 'half', how the pixels that the
            weights know were normalized. Defaults to None: as timm says.
        device (str, optional): Where it runs. Defaults to None: on a GPU if
            there is one.

    Returns:
        FittedModel: What the folder holds, ready to predict.

    Raises:
        FileNotFoundError: If photographs, table or weights are not there.
        ValueError: If they are of no use, ``out`` is of another call, or no
            model is within the budget; says what to do.
    """
    call = dict(
        photographs=_absolute(photographs),
        budget=budget,
        weights=weights if weights is None else str(weights),
        labels=_absolute(labels),
        groups=groups,
        folds=folds,
        class_weights=class_weights,
        pixels=pixels,
    )
    with Log() as log:
        _run(prepare(call, out, overwrite, device, log), probe_only)
    return FittedModel(out, device)


def _absolute(path: str | PathLike | None) -> str | None:
    return None if path is None else os.path.abspath(path)


def _run(job: Job, probe_only: bool) -> None:
    """Do the steps that were not done yet."""
    began, before = time.perf_counter(), job.record.seconds
    say_start(job)
    if job.record.cost is None:
        job.add(cost=_cost(job))
    say_cost(job)
    if job.record.probe is None:
        job.add(**run_probe(job))
    say_accuracy(job)
    # what training writes is no part of this draft
    job.publish(final=job.record.final or 'probe')
    if not probe_only and job.record.training is None:
        job.publish(**improve(job))
    if job.held_out.paths and job.record.held_out is None:
        found, _ = measure(job.folder.model, job.held_out, job.device)
        job.add(held_out=found)
    job.publish(seconds=before + time.perf_counter() - began)
    write_report(job.folder.path)
    if job.record.training:
        for checkpoint in job.folder.training.glob('*/*.pth'):
            checkpoint.unlink()  # what it takes to go on, thrice a model
    say_end(job)


def _cost(job: Job) -> dict:
    full = job.config.model
    if job.variant.out_type:
        size, number = job.variant.img_size, len(job.classes)
        full = plain_model(job.pretrained, size, number)
    return cost_of(job.config.model, full, job.device)
