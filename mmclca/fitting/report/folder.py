# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``fit`` left in its folder, as the parts of the report read it."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from mmclca.utils.atomic_write import finish_replacing
from mmclca.utils.csv_files import read_rows

NEEDED = ('fit.json', 'photographs.csv', 'evidence.safetensors')
PARTS = ('weights', 'model', 'cost', 'probe', 'threshold', 'versions')


class Facts(dict):
    """A part of fit.json; what is not there is None."""

    def __missing__(self, name: str) -> None:
        return None


@dataclass(frozen=True)
class Named:
    """A photograph, named by models that were fitted without it.

    Args:
        path (str): The file.
        name (str): What to call it: its path below the photographs' folder.
        label (str): The class that it is given.
        predicted (str): The class that it is taken for.
        p_given (float): Probability of the first.
        p_predicted (float): Probability of the second.
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
    """A folder that ``fit`` wrote.

    Args:
        path (Path): The folder.
        facts (Facts): What ``fit.json`` holds.
        tested (list[Named]): Photographs that were tested.
        grouped (bool): Whether photographs belong to groups, such as plants.
    """

    path: Path
    facts: Facts
    tested: list[Named]
    grouped: bool

    @property
    def classes(self) -> list[str]:
        """Names of all classes."""
        return self.facts['classes']

    def counts(self) -> list[int]:
        """Photographs of each class."""
        return [self.facts['counts'][name] for name in self.classes]


def read_folder(folder: str | os.PathLike) -> FitFolder:
    """Read what a report is made of.

    Args:
        folder (str | Path): The folder that ``fit`` wrote.

    Raises:
        FileNotFoundError: If one of its files is missing.
        ValueError: If two of them are not of one run.
    """
    folder = Path(folder)
    finish_replacing(folder)
    for name in NEEDED:
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f'{folder} has no {name}: give the folder that '
                '`python -m mmclca fit` wrote'
            )
    facts = _facts((folder / 'fit.json').read_text(encoding='utf-8'))
    rows = used_rows(folder / 'photographs.csv')
    evidence = load_file(folder / 'evidence.safetensors')['probabilities']
    if evidence.shape != (len(rows), len(facts['classes'])):
        raise ValueError(
            f'{folder}: evidence.safetensors is of {len(evidence)} '
            f'photographs and photographs.csv of {len(rows)}: run '
            '`python -m mmclca fit` again, which writes both'
        )
    tested = _tested(rows, evidence, facts)
    return FitFolder(folder, facts, tested, any(r['group'] for r in rows))


def _facts(text: str) -> Facts:
    """All of fit.json; parts that are null there are empty."""
    facts = json.loads(text, object_hook=Facts)
    return Facts(facts | {part: facts[part] or Facts() for part in PARTS})


def used_rows(table: Path) -> list[dict]:
    """Rows of photographs.csv of those that were used, in their order."""
    return [row for row in read_rows(table) if row['used'] == 'True']


def _tested(
    rows: Sequence[dict], evidence: np.ndarray, facts: Facts
) -> list[Named]:
    place = {name: label for label, name in enumerate(facts['classes'])}
    return [
        Named(
            row['path'],
            _short(row['path'], facts['source']),
            row['class'],
            row['predicted'],
            float(row['p_given']),
            float(probabilities[place[row['predicted']]]),
        )
        for row, probabilities in zip(rows, evidence, strict=True)
        if row['predicted']  # a class's only photograph is never tested
    ]


def _short(path: str, source: str | None) -> str:
    """A path below the photographs' folder, else its last two parts."""
    if source and Path(path).is_relative_to(source):
        return str(Path(path).relative_to(source))
    return str(Path(*Path(path).parts[-2:]))
