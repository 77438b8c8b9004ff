# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Rename a class in all files of a model; no prediction changes."""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.digests import digest
from mmclca.checkpoints.gate.folders import read_file
from mmclca.checkpoints.gate.stored_config import read_stored_classes
from mmclca.checkpoints.model_folder import TABLE, damaged_file_errors
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.checkpoints.publishing import checkpoint_bytes
from mmclca.datasets.photos import Problem
from mmclca.datasets.photos.spellings import normalize_name, visual_key
from mmclca.errors import Error
from mmclca.utils.files import parse_rows, replace_bytes, write_rows

from . import console_text
from .change_text import describe_rename
from .confirmation import check_name
from .fit_folder import FitFolder
from .log import Log
from .record import FitRecord
from .record_parts import Photos
from .report import write_report

# kinds of problems whose cases are class names
OF_CLASSES = ('untrained_classes', 'single_photo_classes')
Value = TypeVar('Value')


def rename(
    files: FitFolder,
    previous: FitRecord,
    name: str,
    new: str,
    log: Log,
    force: bool,
) -> None:
    """Rename a class of a model in a locked folder.

    Raises:
        ConfirmationError: If the new name resembles another class.
        Error: If the new name is not a class name, or a file is damaged.
    """
    if not new or new != normalize_name(new):
        raise Error(f'{new!r} is not a class name; give a visible name')
    if not force:
        check_name(new, [x for x in previous.photos.classes if x != name])
    exports, names = files.list_exports(), {name: new}
    log.open(files.log)
    files.keep_previous()
    files.discard_draft()
    files.draft.path.mkdir()
    for source in (files.model, files.probe):
        checkpoint = open_checkpoint(str(source))
        content = _rename_in_checkpoint(checkpoint, names)
        replace_bytes(files.draft.path / source.name, content)
    table = _rename_in_table(files, names)
    record = replace(rename_in_record(previous, names), table=table)
    files.publish(record)
    with log.status('Writing the report'):
        # no photo is opened: their copies are stored
        write_report(files.path)
    log.print_lines(console_text.format_facts([describe_rename(name, new)]))
    undo = console_text.UNDO_CHANGE
    console_text.print_saved(log, files.path, exports, undo)


def _rename_in_checkpoint(
    checkpoint: Checkpoint, names: Mapping[str, str]
) -> bytes:
    """Return a checkpoint with other class names, and the same weights."""
    classes = read_stored_classes(checkpoint)
    if classes is None:
        raise Error(f'{checkpoint.name} has no class names; fit again')
    renamed = [names.get(x, x) for x in classes]
    config = checkpoint.meta.get('cfg')
    return checkpoint_bytes(checkpoint.weights, config, renamed)


def _rename_in_table(files: FitFolder, names: Mapping[str, str]) -> int:
    """Write photographs.csv to the draft; return its checksum."""
    with damaged_file_errors(files.table, ValueError):
        rows = parse_rows(read_file(files.path, TABLE), 'class', 'predicted')
    for row in rows:
        for column in ('class', 'predicted'):
            row[column] = names.get(row[column], row[column])
    table: Path = files.draft.table
    write_rows(table, [[*rows[0]], *(row.values() for row in rows)])
    return zlib.crc32(table.read_bytes())


def rename_in_record(record: FitRecord, names: Mapping[str, str]) -> FitRecord:
    """Return a record with other class names."""

    def rename_keys(values: Mapping[str, Value]) -> dict[str, Value]:
        return {names.get(key, key): x for key, x in values.items()}

    def rename_items(values: list[str]) -> list[str]:
        return [names.get(x, x) for x in values]

    photos, guarantee = record.photos, record.guarantee
    if guarantee is not None:
        coarse = rename_keys(guarantee.coarse_classes)
        guarantee = replace(guarantee, coarse_classes=coarse)
    estimate = record.estimate
    return replace(
        record,
        probe=replace(estimate, per_class=rename_keys(estimate.per_class)),
        guarantee=guarantee,
        shortcuts=[
            replace(shortcut, extremes=rename_items(shortcut.extremes))
            for shortcut in record.shortcuts
        ],
        photos=replace(
            photos,
            # fit does not resume with the earlier names
            digest=digest([photos.digest, sorted(names.items())]),
            classes=rename_items(photos.classes),
            counts=rename_keys(photos.counts),
            near_duplicate_counts=rename_keys(photos.near_duplicate_counts),
            spreads=[
                replace(
                    spread,
                    single=rename_keys(spread.single),
                    coinciding=rename_items(spread.coinciding),
                )
                for spread in photos.spreads
            ],
            problems=_rename_in_problems(photos, names),
        ),
    )


def _rename_in_problems(
    photos: Photos, names: Mapping[str, str]
) -> list[Problem]:
    """Return the problems with other class names.

    Nearly equal names of classes are compared again.
    """
    problems = []
    for problem in photos.problems:
        cases = problem.cases
        if problem.kind in OF_CLASSES:
            cases = tuple(
                (names.get(case[0], case[0]), *case[1:]) for case in cases
            )
        elif problem.kind == 'similar_class_names':
            renamed = [tuple(names.get(x, x) for x in case) for case in cases]
            cases = tuple(
                case for case in renamed if len({*map(visual_key, case)}) == 1
            )
            if not cases:
                continue
        problems.append(replace(problem, cases=cases))
    return problems
