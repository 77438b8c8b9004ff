# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the HTML report of a fitted model."""

import os
import shlex
from collections.abc import Collection, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from mmclca.checkpoints.gate.photo_table import PhotoFiles, PhotoRow
from mmclca.checkpoints.model_folder import (
    damaged_file_errors,
    prepare_writing,
)
from mmclca.datasets.pipelines import CROP
from mmclca.errors import Error
from mmclca.languages import (
    ENGLISH,
    choose_form,
    current_language,
    text,
    use_language,
)
from mmclca.utils.files import replace_bytes
from mmclca.utils.messages import join_first

from . import wording
from .fit_folder import FitFolder
from .pictures import Pictures
from .record import FitRecord
from .record_description import describe_record
from .report_chart import build_curve_section, choose_curve_unit
from .report_patches import draw_patch_section
from .report_photos import (
    TestedPhoto,
    build_recall_section,
    build_shortcut_sections,
    find_confused_pairs,
    list_added_classes,
    list_tested_photos,
    list_wrong_photos,
)

__all__ = ['write_report']

MAX_WRONG = 24
SURE = 0.9  # probability of a prediction that questions the label


def write_report(
    folder: str | os.PathLike, confirmed: Collection[str] = ()
) -> Path:
    """Write the report of a fitted model, ``report.html``.

    The file contains its pictures, loads nothing and runs no script. It is
    replaced in one step.

    Args:
        folder (str | Path): Folder of the model.
        confirmed (Collection[str]): Paths of photos that may be opened, see
            :class:`PhotoFiles`. Defaults to (): copies in the folder are
            shown, and photos without a copy are left blank.

    Returns:
        Path: The file.

    Raises:
        FileNotFoundError: If ``fit.json`` or ``photographs.csv`` is missing.
        Error: If ``fit.json`` is damaged.
    """
    files = FitFolder(folder)
    prepare_writing(files.path)
    record, photos = files.read_complete(), files.read_used_photos()
    photo_files = PhotoFiles.from_rows(photos, files.path).confirm(confirmed)
    pictures = Pictures(files.pictures, photo_files)
    with damaged_file_errors(files.table, Error):
        tested = list_tested_photos(photos, record.photos.classes)
    with use_language(record.language or ENGLISH):
        page = render(
            record=record,
            name=files.name_model(record),
            folder=shlex.quote(files.path.resolve().name),
            kept=draw_patch_section(files.model, tested, pictures),
            **describe_photos(record, photos),
            **describe_predictions(record, tested, pictures),
        )
    if confirmed:
        pictures.save()
    # file names need not be UTF-8
    replace_bytes(files.report, page.encode(errors='replace'))
    return files.report


def describe_photos(
    record: FitRecord, photos: Sequence[PhotoRow]
) -> dict[str, Any]:
    """Return the template's variables about photos and their numbers."""
    counts = [*record.photos.counts.values()]
    is_grouped = record.is_across_days or any(x.group for x in photos)
    unit = choose_curve_unit(counts, is_grouped)
    source = record.photos.source
    return dict(
        described=describe_record(record),
        counts=counts,
        grouped=is_grouped,
        added=list_added_classes(photos, source, record.call.photos),
        curve=build_curve_section(
            record.learning_curve, unit, record.estimate
        ),
    )


def describe_predictions(
    record: FitRecord, tested: Sequence[TestedPhoto], pictures: Pictures
) -> dict[str, Any]:
    """Return the template's variables about classes and predictions."""
    wrong = list_wrong_photos(tested)
    doubtful = [photo for photo in wrong if photo.p_prediction >= SURE]
    errors = [photo for photo in wrong if photo.p_prediction < SURE]
    return dict(
        tested=len(tested),
        classes=build_recall_section(record.estimate.per_class),
        pairs=find_confused_pairs(tested, record.photos.classes, pictures),
        shortcuts=build_shortcut_sections(
            record.suspicious_shortcuts, tested, pictures
        ),
        num_doubtful=len(doubtful),
        doubtful=add_thumbnails(doubtful, pictures),
        num_errors=len(errors),
        errors=add_thumbnails(errors, pictures),
        sure=SURE,
        crop=CROP,
    )


def add_thumbnails(
    photos: Sequence[TestedPhoto], pictures: Pictures
) -> list[tuple[TestedPhoto, dict[str, Any]]]:
    """Pair the first photos with small copies of them."""
    return [
        (photo, pictures.thumbnail(photo.path, photo.name))
        for photo in photos[:MAX_WRONG]
    ]


def render(**variables: Any) -> str:
    """Fill the template; names of classes and files are escaped."""
    return _load_template().render(
        variables, t=text, html=write_html, language=current_language()
    )


def write_html(key: str, **values: Any) -> Markup:
    """Return a text with HTML elements; values are escaped."""
    return Markup(choose_form(key, values.get('number'))).format(**values)


@cache
def _load_template() -> Template:
    environment = Environment(
        loader=PackageLoader('mmclca.fitting', 'templates'),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=wording.percent,
        about=wording.about,
        out_of_hundred=wording.out_of_hundred,
        digits=wording.digits,
        sentence=wording.sentence,
        duration=wording.duration,
        is_table=wording.is_table,
        file_name=wording.file_name,
        listed=partial(join_first, limit=12),
    )
    return environment.get_template('report.html')
