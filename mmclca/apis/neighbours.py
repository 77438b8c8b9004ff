# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What :func:`mmclca.apis.gallery.look_up` finds, as files."""

import json
from collections.abc import Sequence
from pathlib import Path

from mmclca.utils.csv_files import write_rows
from mmclca.visualization.figures import (
    FRAMES,
    Panel,
    contact_sheet,
    photograph,
)

from .output import open_text

FACTS = ('image', 'name', 'knn_class', 'knn_score', 'average_precision')
KEYS = ('image', 'name', 'similarity')


def write_neighbours(
    entries: Sequence[dict], metrics: dict[str, float], path: Path
) -> None:
    """Write queries with what they find, as .json or as .csv."""
    if path.suffix == '.csv':
        write_rows(path, _rows(entries))
        return
    with open_text(path) as file:
        content = dict(metrics=metrics, queries=entries)
        json.dump(content, file, indent=1, ensure_ascii=False)


def _rows(entries):
    ranks = range(1, 1 + max(len(e['neighbours']) for e in entries))
    yield [*FACTS, *(f'{key}_{rank}' for rank in ranks for key in KEYS)]
    for entry in entries:
        near = [one[key] for one in entry['neighbours'] for key in KEYS]
        yield [*(entry.get(fact) for fact in FACTS), *near]


def draw_neighbours(
    entries: Sequence[dict], path: Path, number: int = 8, nearest: int = 5
) -> None:
    """Draw queries in the first row, and what they find below.

    Args:
        entries (Sequence[dict]): The queries.
        path (Path): The picture.
        number (int): How many queries, evenly spread. Defaults to 8.
        nearest (int): Images below each. Defaults to 5.
    """
    number = min(number, len(entries))
    columns = {}
    for rank in range(number):
        entry = entries[rank * len(entries) // number]
        # names may repeat
        heading = f'{rank + 1}: {Path(entry["image"]).name}'
        near = entry['neighbours'][:nearest]
        columns[heading] = [
            photograph(entry['image'], note=_of_query(entry)),
            *(_neighbour(entry, one) for one in near),
        ]
    contact_sheet(columns, path)


def _of_query(entry: dict) -> str:
    """The class of a query, or the one that is voted for."""
    if entry['name'] is not None:
        return entry['name']
    return f'vote: {entry["knn_class"]}' if 'knn_class' in entry else ''


def _neighbour(entry: dict, one: dict) -> Panel:
    """The picture of an image found, in the colour of right or wrong."""
    return photograph(
        one['image'],
        note=f'{one["similarity"]:.3f} {one["name"] or ""}'.strip(),
        frame=FRAMES[_same(entry, one)],
    )


def _same(entry: dict, other: dict) -> bool | None:
    """Whether an image found is of the class of the query, or of the one
    that is voted for; None where there is none."""
    name = entry['name'] or entry.get('knn_class')
    if name is None or other['name'] is None:
        return None
    return name == other['name']
