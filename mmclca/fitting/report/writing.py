# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
import shlex
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from mmclca.utils.atomic_write import replace_bytes

from . import formats
from .confused import class_tables, confused_pairs, doubtful, with_picture
from .curve import Point, chart, expected
from .folder import FitFolder, read_fit
from .kept import what_is_kept

DOUBTFUL = 24  # photographs to show


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
    fit = read_fit(folder)
    text = render(**_parts(fit))
    # names of files need not be text
    replace_bytes(fit.files.report, text.encode(errors='replace'))
    return fit.files.report


def _parts(fit: FitFolder) -> dict:
    """What the template asks for."""
    record, wrong = fit.record, doubtful(fit.tested)
    path = fit.files.path
    return dict(
        record=record,
        name=Path(record.source or path.resolve()).name,
        counts=[*record.counts.values()],
        tested=len(fit.tested),
        grouped=fit.grouped,
        classes=class_tables(record.probe['per_class']),
        pairs=confused_pairs(fit),
        wrong=len(wrong),
        doubtful=[with_picture(one) for one in wrong[:DOUBTFUL]],
        curve=_curve(record.learning_curve),
        kept=what_is_kept(fit.files.model, fit.tested),
        folder=shlex.quote(str(path)),
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


FILTERS = ('percent', 'about', 'of_hundred', 'digits', 'duration', 'listed')


def render(**parts) -> str:
    """Fill the template; names of classes and files are text, no markup."""
    environment = Environment(
        loader=PackageLoader('mmclca.fitting.report', 'templates'),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {name: vars(formats)[name] for name in FILTERS}
    environment.globals['plural'] = formats.plural
    return environment.get_template('report.html').render(parts)
