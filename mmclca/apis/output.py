# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mmclca.utils.csv_files import write_rows

MAPS = ('kept', 'attribution', 'cls_attention')
NUMBERS = ('tokens', 'gmacs')
DECISION = ('pred_class', 'known_score')  # where classes may be unknown


def best_classes(
    result: dict, classes: Sequence[str], topk: int = 5
) -> list[dict]:
    """The best classes of an image, best first.

    Args:
        result (dict): Of :class:`TokenReductionInferencer`.
        classes (Sequence[str]): Names of the classes.
        topk (int): How many. Defaults to 5.

    Returns:
        list[dict]: ``label``, ``name`` and ``score`` of each; empty for an
        image that was not read.
    """
    scores = result.get('pred_scores', np.empty(0))
    return [
        dict(label=int(i), name=classes[i], score=round(float(scores[i]), 6))
        for i in (-scores).argsort(kind='stable')[:topk]
    ]


def decision(result: dict) -> dict:
    """What a threshold made of an image: its class or 'unknown', and why.

    Args:
        result (dict): Of :class:`TokenReductionInferencer`.

    Returns:
        dict: ``pred_class`` and ``known_score``; empty without a threshold.
    """
    if 'known_score' not in result:
        return {}
    return {name: result[name] for name in DECISION}


def write_json(
    results: Sequence[dict],
    path: str | Path,
    classes: Sequence[str],
    topk: int = 5,
    with_maps: bool = False,
) -> None:
    """Write results as a list, an entry an image.

    An entry has ``image``, ``classes`` (see :func:`best_classes`), and
    ``error``, ``tokens`` and ``gmacs`` where the result has them. With
    ``known_score`` comes ``pred_class``, which may be 'unknown'.

    Args:
        results (Sequence[dict]): Of :class:`TokenReductionInferencer`.
        path (str | Path): The file; its folder is made.
        classes (Sequence[str]): Names of the classes.
        topk (int): Classes to name for each image. Defaults to 5.
        with_maps (bool): Whether to write ``kept``, ``attribution`` and
            ``cls_attention`` too, as lists of rows. Defaults to False.
    """
    names = ('error', *NUMBERS, *(MAPS if with_maps else ()))
    entries = [
        dict(
            image=result['image'],
            **decision(result),
            classes=best_classes(result, classes, topk),
            **{name: result[name] for name in names if name in result},
        )
        for result in results
    ]
    layout = dict(indent=1, ensure_ascii=False, default=np.ndarray.tolist)
    with open_text(path) as file:
        json.dump(entries, file, **layout)


def write_csv(
    results: Sequence[dict],
    path: str | Path,
    classes: Sequence[str],
    topk: int = 5,
) -> None:
    """Write results as a table, a row an image.

    Columns are ``image``; ``pred_class``, which may be 'unknown', and
    ``known_score`` where results have the latter; ``label_1``, ``name_1``,
    ``score_1`` and so on, by rank; ``tokens`` (of each layer, with spaces
    between) and ``gmacs`` where results have them; ``error``, empty where the
    image was read.

    Args:
        results (Sequence[dict]): Of :class:`TokenReductionInferencer`.
        path (str | Path): The file; its folder is made.
        classes (Sequence[str]): Names of the classes.
        topk (int): Classes to name for each image. Defaults to 5.
    """
    write_rows(path, _rows(results, classes, topk))


def _rows(results, classes, topk) -> Iterator[list]:
    ranks = range(1, 1 + min(topk, len(classes)))
    keys = ('label', 'name', 'score')
    numbers = [n for n in NUMBERS if any(n in result for result in results)]
    named = [f'{key}_{rank}' for rank in ranks for key in keys]
    decided = DECISION if any(map(decision, results)) else ()
    yield ['image', *decided, *named, *numbers, 'error']
    for result in results:
        best = best_classes(result, classes, topk)
        cells = [one[key] for one in best for key in keys] or [''] * len(named)
        more = [_cell(result.get(name, '')) for name in numbers]
        said = [decision(result).get(name, '') for name in decided]
        yield [result['image'], *said, *cells, *more, result.get('error', '')]


def _cell(value):
    return ' '.join(map(str, value)) if isinstance(value, list) else value


def open_text(path: str | Path):
    """Open a file of results to write to it; its folder is made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # names of files may be no UTF-8
    return path.open(
        'w', encoding='utf-8', errors='surrogateescape', newline=''
    )
