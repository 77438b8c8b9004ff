# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
import shlex
from pathlib import Path

from mmclca.utils.atomic_write import replace_bytes

from .caveats import caveats
from .chart import chart
from .classes import class_tables
from .confused import confused_pairs, doubtful, with_pictures
from .cost import cost_rows
from .curve import Point, expected
from .folder import FitFolder, read_folder
from .kept import what_is_kept
from .making import commands, making
from .rendering import render


def write_report(folder: str | os.PathLike) -> Path:
    """Write what was found out about a model as a page to read.

    One file, ``report.html``, with its pictures in it, that loads nothing
    from elsewhere and runs no script. It is replaced in one step.

    Args:
        folder (str | Path): The folder that ``fit`` wrote. Photographs
            that are no longer where they were are left blank.

    Returns:
        Path: The file.

    Raises:
        FileNotFoundError: If ``fit.json``, ``photographs.csv`` or
            ``evidence.safetensors`` is missing.
        ValueError: If these are not of one run.
    """
    fit = read_folder(folder)
    page = fit.path / 'report.html'
    text = render(**_parts(fit))
    # names of files need not be text
    replace_bytes(page, text.encode(errors='replace'))
    return page


def _parts(fit: FitFolder) -> dict:
    """What the template asks for."""
    facts, wrong = fit.facts, doubtful(fit.tested)
    return dict(
        facts=facts,
        name=Path(facts['source'] or fit.path.resolve()).name,
        counts=fit.counts(),
        tested=len(fit.tested),
        caveats=caveats(fit),
        classes=class_tables(facts['probe']['per_class'] or {}),
        pairs=confused_pairs(fit),
        wrong=len(wrong),
        doubtful=with_pictures(wrong),
        curve=_curve(facts['learning_curve'] or []),
        kept=what_is_kept(fit.path / 'model.pth', fit.tested),
        cost=cost_rows(facts['cost']),
        made=making(facts),
        commands=commands(shlex.quote(str(fit.path))),
    )


def _curve(measured: list[dict]) -> dict | None:
    """The learning curve with its estimate and its drawing."""
    if not measured:
        return None
    points = [Point(**point) for point in measured]
    estimate = expected(points)
    return dict(
        points=points, estimate=estimate, chart=chart(points, estimate)
    )
