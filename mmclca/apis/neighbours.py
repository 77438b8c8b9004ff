# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What queries find in a gallery, as files: JSON, CSV and pictures."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from mmclca.utils.files import write_rows
from mmclca.visualization.figures import FRAMES, contact_sheet, photograph

from .gallery import NEAREST
from .output import dump_json

QUERY = ('image', 'name', 'knn_class', 'knn_score', 'average_precision')


def write_neighbours(
    entries: Sequence[dict], metrics: dict[str, float], path: Path
) -> None:
    """Write queries with what they find, as .json or as .csv."""
    if path.suffix == '.csv':
        write_rows(path, _rows(entries))
    else:
        dump_json(dict(metrics=metrics, queries=entries), path)


def _rows(entries: Sequence[dict]) -> Iterator[list]:
    ranks = range(1, 1 + max(len(e['neighbours']) for e in entries))
    yield [*QUERY, *(f'{key}_{rank}' for rank in ranks for key in NEAREST)]
    for entry in entries:
        near = [one[key] for one in entry['neighbours'] for key in NEAREST]
        yield [*(entry.get(fact) for fact in QUERY), *near]


def draw_neighbours(
    entries: Sequence[dict],
    path: Path,
    number: int = 8,
    nearest: int = 5,
    coarse_of: dict[str, str] = {},
) -> None:
    """Draw queries in the first row, and what they find below.

    Args:
        entries (Sequence[dict]): The queries.
        path (Path): The picture.
        number (int): How many queries, evenly spread. Defaults to 8.
        nearest (int): Images below each. Defaults to 5.
        coarse_of (dict[str, str]): The coarse class of each class, for a
            colour of its own. Defaults to {}.
    """
    number = min(number, len(entries))
    columns = {}
    for rank in range(number):
        entry = entries[rank * len(entries) // number]
        name = entry['name'] or entry.get('knn_class', '')
        vote = 'vote: ' if name and not entry['name'] else ''
        cells = [photograph(entry['image'], note=f'{vote}{name}')]
        for one in entry['neighbours'][:nearest]:
            note = f'{one["similarity"]:.3f} {one["name"] or ""}'.strip()
            frame = FRAMES[_same(name, one['name'], coarse_of)]
            cells.append(photograph(one['image'], note=note, frame=frame))
        # names of files may repeat
        columns[f'{rank + 1}: {Path(entry["image"]).name}'] = cells
    contact_sheet(columns, path)


def _same(name: str, other: str | None, coarse_of: dict) -> bool | str | None:
    """Compare the classes of a query and of an image found; 'coarse' where
    their coarse class is one, None where there is none."""
    if not name or other is None:
        return None
    if name == other or name not in coarse_of:
        return name == other
    return 'coarse' if coarse_of[name] == coarse_of.get(other) else False
