# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Predictions and similar images as files: JSON, CSV and pictures."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mmclca.datasets.batches import make_view
from mmclca.errors import Error
from mmclca.utils.files import replace_bytes, write_rows
from mmclca.utils.spreadsheets import write_spreadsheet
from mmclca.visualization import (
    check_reduces,
    draw_kept_patches,
    find_kept_patches,
)
from mmclca.visualization.figures import FRAMES, contact_sheet, draw_photo

from .answers import BETWEEN, SURE
from .inferencer import PREDICTION, TokenReductionInferencer, get_prediction
from .neighbors import NEAREST

MAPS = ('kept', 'attribution', 'cls_attention')
NUMBERS = ('tokens', 'gmacs')
IMAGE, PLANT = ('image',), ('plant', 'photos', 'images')
SEPARATOR = ' | '  # between images of a plant
QUERY = ('image', 'name', 'knn_class', 'knn_score', 'average_precision')
YES_OR_NO = {True: 'yes', False: 'no', None: ''}
RESULT, UNKNOWN = ('result', 'confidence'), 'unknown'


def best_classes(
    result: dict, classes: Sequence[str], topk: int = 5
) -> list[dict]:
    """Return the classes with the highest scores, best first.

    Args:
        result (dict): Result of :class:`TokenReductionInferencer`.
        classes (Sequence[str]): Class names.
        topk (int): Number of classes. Defaults to 5.

    Returns:
        list[dict]: ``label``, ``name`` and ``score`` per class; empty for an
        unreadable image. Classes that cannot occur, whose score is NaN, are
        omitted.
    """
    scores = result.get('pred_scores', np.empty(0))
    return [
        dict(label=int(i), name=classes[i], score=round(float(scores[i]), 6))
        for i in (-scores).argsort(kind='stable')[:topk]
        if not np.isnan(scores[i])
    ]


def prediction_cells(result: dict) -> list:
    """Return :func:`get_prediction` as table cells, one per ``PREDICTION``.

    Scores are numbers, ``known`` is 'yes' or 'no'. All cells of an unreadable
    image are empty, and the last two without a threshold.
    """
    if 'error' in result:
        return [''] * len(PREDICTION)
    is_known = result['known']
    known_score = '' if is_known is None else round(result['known_score'], 6)
    score = round(result['pred_score'], 6)
    return [result['pred_class'], score, YES_OR_NO[is_known], known_score]


def write_json(
    results: Sequence[dict],
    path: str | Path,
    classes: Sequence[str],
    topk: int = 5,
    with_maps: bool = False,
) -> None:
    """Write results as a JSON list with one entry per image or plant.

    An entry has ``image``, the values of :func:`get_prediction`, ``classes``
    (see :func:`best_classes`), and ``sure_answer``, ``sure_set``, ``error``,
    ``tokens`` and ``gmacs`` if the result has them. For a plant, ``plant``,
    ``photos`` (their number), ``images`` and ``unreadable`` replace ``image``.

    Args:
        results (Sequence[dict]): Results of :class:`TokenReductionInferencer`,
            or of ``mmclca.apis.plants.combine_results``.
        path (str | Path): The file; its folder is created.
        classes (Sequence[str]): Class names.
        topk (int): Number of classes per image. Defaults to 5.
        with_maps (bool): Whether to write ``kept``, ``attribution`` and
            ``cls_attention`` too, as lists of rows. Defaults to False.
    """
    names = (*SURE, 'error', *NUMBERS, *(MAPS if with_maps else ()))
    entries = [
        _identify(result)
        | get_prediction(result)
        | dict(classes=best_classes(result, classes, topk))
        | {name: result[name] for name in names if name in result}
        for result in results
    ]
    dump_json(entries, path)


def write_table(
    results: Sequence[dict],
    path: str | Path,
    classes: Sequence[str],
    topk: int = 5,
) -> None:
    """Write results as a table with one row per image or plant.

    Columns: ``image``, for plants instead ``plant``, ``photos`` (number of
    combined photos) and ``images`` (their paths, separated by ``|``);
    ``result``, the predicted class or 'unknown'; ``confidence``, its
    probability, 0 for 'unknown'; ``pred_class``, ``pred_score``, ``known``
    (yes or no) and ``known_score``, the last two empty without a threshold;
    ``sure_answer`` and ``sure_set`` if results have them; ``label_1``,
    ``name_1``, ``score_1`` and so on by rank; ``tokens`` (per layer, separated
    by spaces) and ``gmacs`` if results have them; ``error``, empty for a
    readable image.

    Args:
        results (Sequence[dict]): Results of :class:`TokenReductionInferencer`,
            or of ``mmclca.apis.plants.combine_results``.
        path (str | Path): The file, .csv or .xlsx; its folder is created. A
            .xlsx file needs openpyxl.
        classes (Sequence[str]): Class names.
        topk (int): Number of classes per image. Defaults to 5.

    Raises:
        ImportError: If openpyxl is needed, but not installed.
    """
    write_spreadsheet(path, _rows(results, classes, topk))


def _rows(results, classes, topk) -> Iterator[list]:
    ranks = range(1, 1 + min(topk, len(classes)))
    keys = ('label', 'name', 'score')
    numbers = [n for n in NUMBERS if any(n in result for result in results)]
    named = [f'{key}_{rank}' for rank in ranks for key in keys]
    sure = [n for n in SURE if any(n in result for result in results)]
    first = PLANT if any('plant' in result for result in results) else IMAGE
    yield [*first, *RESULT, *PREDICTION, *sure, *named, *numbers, 'error']
    for result in results:
        best = best_classes(result, classes, topk)
        # sorted by the cells of RESULT, unknown photos come first
        cells = [''] * len(RESULT)
        if 'error' not in result:
            is_unknown = result['known'] is False
            score = round(result['pred_score'], 6)
            cells = (
                [UNKNOWN, 0] if is_unknown else [result['pred_class'], score]
            )
        row = [*_identify_in_cells(result), *cells, *prediction_cells(result)]
        if sure:
            row += [
                result.get('sure_answer', ''),
                BETWEEN.join(result.get('sure_set', ())),
            ]
        cells = [x[key] for x in best for key in keys]
        row += cells + [''] * (len(named) - len(cells))
        cells = [result.get(name, '') for name in numbers]
        row += [' '.join(map(str, x)) if type(x) is list else x for x in cells]
        error = result.get('error', '')
        if result.get('unreadable'):
            images = SEPARATOR.join(map(str, result['unreadable']))
            error = f'unreadable: {images}'
        yield [*row, error]


def _identify(result: dict) -> dict[str, Any]:
    """Return the image of a result, or the plant and its images."""
    if 'plant' not in result:
        return dict(image=result['image'])
    images = result['images']
    plant = dict(plant=result['plant'], photos=len(images), images=images)
    return plant | dict(unreadable=result['unreadable'])


def _identify_in_cells(result: dict) -> list:
    """Return the cells of the columns ``IMAGE`` or ``PLANT``."""
    if 'plant' not in result:
        return [result['image']]
    images = result['images']
    return [result['plant'], len(images), SEPARATOR.join(map(str, images))]


def dump_json(content, path: str | Path) -> None:
    """Write values and NumPy arrays as JSON in one step; create the folder."""
    encoded = json.dumps(
        content, indent=1, ensure_ascii=False, default=np.ndarray.tolist
    )
    # file names are not always valid UTF-8
    replace_bytes(Path(path), encoded.encode(errors='surrogateescape'))


def draw_prediction(
    inferencer: TokenReductionInferencer,
    source: str | np.ndarray,
    result: dict,
    out: str | Path,
) -> None:
    """Draw the patches that remain after each stage, next to the prediction.

    Args:
        inferencer (TokenReductionInferencer): The model.
        source (str | np.ndarray): The image, as passed to the inferencer.
        result (dict): Its result, without an error.
        out (str | Path): The picture; its folder is created.

    Raises:
        Error: If the model does not reduce tokens, or the image is unreadable.
    """
    model = inferencer.model
    check_reduces(model.backbone)
    title = f'{result["pred_class"]}, {result["pred_score"]:.3f}'
    if result['known'] is False:
        title += f'; not known, {result["known_score"]:.3f}'
    prepared = inferencer.prepare(source)
    if isinstance(prepared, str):
        raise Error(f'the image is unreadable: {prepared}')
    view = make_view(model, title, prepared['inputs'])
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    draw_kept_patches(find_kept_patches(model, [view]), str(out))


def picture_paths(images: Sequence[str], folder: str | Path) -> list[Path]:
    """Return picture paths for images: same subfolders, ``.png`` appended.

    Args:
        images (Sequence[str]): Paths of the images.
        folder (str | Path): Folder for all pictures.

    Raises:
        Error: If a picture would be written to a folder with images.
    """
    absolute = [Path(os.path.abspath(image)) for image in images]
    folders = {path.parent for path in absolute}
    top = os.path.commonpath(folders)
    pictures = [
        Path(folder, f'{path.relative_to(top)}.png') for path in absolute
    ]
    if folders & {Path(os.path.abspath(path)).parent for path in pictures}:
        raise Error(
            f'{folder} contains images, which pictures might replace; choose '
            'another folder'
        )
    return pictures


def write_neighbors(
    entries: Sequence[dict], metrics: dict[str, float], path: Path
) -> None:
    """Write the result of :func:`look_up` as .json or .csv.

    A CSV table has one row per query, and no metrics.
    """
    if path.suffix != '.csv':
        dump_json(dict(metrics=metrics, queries=entries), path)
        return
    ranks = range(1, 1 + max(len(e['neighbors']) for e in entries))
    named = [f'{key}_{rank}' for rank in ranks for key in NEAREST]
    rows: list[list] = [[*QUERY, *named]]
    for entry in entries:
        row = [entry.get(name) for name in QUERY]
        row += [x[key] for x in entry['neighbors'] for key in NEAREST]
        rows.append(row)
    write_rows(path, rows)


def draw_neighbors(
    entries: Sequence[dict],
    path: Path,
    number: int = 8,
    nearest: int = 5,
    coarse_of: dict[str, str] = {},
) -> None:
    """Draw queries in the first row, and their similar images below.

    ``number`` queries are spread evenly over all, with ``nearest`` images
    each. Frame colors follow the class and, with the coarse class of each
    class in ``coarse_of``, the coarse class.
    """
    number = min(number, len(entries))
    columns = {}
    for rank in range(number):
        entry = entries[rank * len(entries) // number]
        name = entry['name'] or entry.get('knn_class', '')
        vote = 'vote: ' if name and not entry['name'] else ''
        cells = [draw_photo(entry['image'], note=f'{vote}{name}')]
        for neighbor in entry['neighbors'][:nearest]:
            label = neighbor['name']
            note = f'{neighbor["similarity"]:.3f} {label or ""}'.strip()
            frame = FRAMES[_compare_classes(name, label, coarse_of)]
            cells.append(draw_photo(neighbor['image'], note=note, frame=frame))
        # numbered, because file names can repeat
        columns[f'{rank + 1}: {Path(entry["image"]).name}'] = cells
    contact_sheet(columns, path)


def _compare_classes(
    name: str, other: str | None, coarse_of: dict[str, str]
) -> bool | str | None:
    """Compare the classes of a query and a similar image.

    'coarse' if only their coarse classes are equal; None without a class.
    """
    if not name or other is None:
        return None
    if name == other or name not in coarse_of:
        return name == other
    return 'coarse' if coarse_of[name] == coarse_of.get(other) else False
