# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
import shlex
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from mmclca.utils.files import replace_bytes

from ..record import ModelFolder
from . import formats
from .parts import (
    class_tables,
    confused_pairs,
    doubtful,
    expected,
    read_tested,
    used_rows,
)
from .pictures import chart, thumbnail, what_is_kept

DOUBTFUL = 24  # photographs to show
FILTERS = ('percent', 'about', 'of_hundred', 'digits', 'duration', 'listed')


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
        FileNotFoundError: If ``fit.json`` or ``photographs.csv`` is missing.
        ValueError: If ``fit.json`` is damaged.
    """
    files = ModelFolder(folder)
    text = render(**_parts(files))
    # names of files need not be text
    replace_bytes(files.report, text.encode(errors='replace'))
    return files.report


def _parts(files: ModelFolder) -> dict:
    """Gather what the template asks for."""
    record = files.read()
    tested = read_tested(files.table, record.source)
    wrong = doubtful(tested)
    return dict(
        record=record,
        name=Path(record.source or files.path.resolve()).name,
        counts=[*record.counts.values()],
        tested=len(tested),
        grouped=any(row['group'] for row in used_rows(files.table)),
        classes=class_tables(record.probe['per_class']),
        pairs=confused_pairs(tested, record.classes),
        wrong=len(wrong),
        doubtful=[
            (
                row,
                thumbnail(
                    row['path'], f'{row["name"]}, given as {row["class"]}'
                ),
            )
            for row in wrong[:DOUBTFUL]
        ],
        curve=_curve(record.learning_curve),
        kept=what_is_kept(files.model, tested),
        folder=shlex.quote(str(files.path)),
    )


def _curve(points: list[dict]) -> dict | None:
    """Draw the learning curve with its estimate, of two points or more."""
    if not points:
        return None
    ahead = expected(points)
    drawn = ahead and chart(points, ahead)
    return dict(points=points, estimate=ahead, chart=drawn)


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
