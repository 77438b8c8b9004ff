# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``fit`` left in its folder, as the parts of the report read it."""

import os
from dataclasses import dataclass
from pathlib import Path

from safetensors.numpy import load_file

from mmclca.utils.csv_files import read_rows

from ..model_folder import ModelFolder
from ..record import FitRecord


@dataclass(frozen=True)
class Named:
    """A photograph, named by models that were fitted without it.

    Its path below the photographs' folder, the class that it is given, the
    one that it is taken for, and the probabilities of both.
    """

    path: str
    name: str
    label: str
    predicted: str
    p_given: float
    p_predicted: float

    @property
    def right(self) -> bool:
        """Whether it is taken for what it is given as."""
        return self.predicted == self.label


@dataclass(frozen=True)
class FitFolder:
    """A folder that ``fit`` wrote, and the photographs that were tested."""

    files: ModelFolder
    record: FitRecord
    tested: list[Named]
    grouped: bool  # whether photographs belong to groups, such as plants


def read_fit(folder: str | os.PathLike) -> FitFolder:
    """Read what a report is made of."""
    files = ModelFolder(folder)
    for path in (files.file, files.table, files.evidence):
        if not path.is_file():
            raise FileNotFoundError(
                f'{files.path} has no {path.name}: give the folder that '
                '`python -m mmclca fit` wrote'
            )
    record, rows = files.read(), used_rows(files.table)
    evidence = load_file(files.evidence)['probabilities']
    if evidence.shape != (len(rows), len(record.classes)):
        raise ValueError(
            f'{folder}: evidence.safetensors is of {len(evidence)} '
            f'photographs and photographs.csv of {len(rows)}: run '
            '`python -m mmclca fit` again, which writes both'
        )
    tested = [
        _named(row, found[record.classes.index(row['predicted'])], record)
        for row, found in zip(rows, evidence, strict=True)
        if row['predicted']  # a class's only photograph is never tested
    ]
    return FitFolder(files, record, tested, any(r['group'] for r in rows))


def used_rows(table: Path) -> list[dict]:
    """Rows of photographs.csv of those that were used, in their order."""
    return [row for row in read_rows(table) if row['used'] == 'True']


def _named(row: dict, p_predicted: float, record: FitRecord) -> Named:
    path = Path(row['path'])
    name = Path(*path.parts[-2:])
    if record.source and path.is_relative_to(record.source):
        name = path.relative_to(record.source)
    return Named(
        path=row['path'],
        name=str(name),
        label=row['class'],
        predicted=row['predicted'],
        p_given=float(row['p_given']),
        p_predicted=float(p_predicted),
    )
