# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Photos that the report marks: misclassified, or with a doubtful label."""

from contextlib import suppress
from dataclasses import dataclass, field

from PIL import Image

from mmclca.checkpoints.gate.photo_table import PhotoFiles
from mmclca.datasets.decoding import UndecodedError
from mmclca.fitting.pictures import upright
from mmclca.fitting.report_photos import list_tested_photos, list_wrong_photos

from .models import KeptModel
from .photos import make_preview

MAX_MARKED = 48


@dataclass(frozen=True)
class MarkedPhoto:
    """Photo whose cross-validated prediction differs from its label.

    Args:
        path (str): The photo.
        label (str): Its class.
        title (str): File name, class, prediction and its probability.
        picture (Image.Image | None): The photo; None if its file is gone.
    """

    path: str
    label: str
    title: str
    picture: Image.Image | None


@dataclass(frozen=True)
class MarkedPhotos:
    """Marked photos, and all classes."""

    photos: list[MarkedPhoto] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)


def list_marked(model: KeptModel) -> MarkedPhotos:
    """List marked photos, the least probable labels first."""
    rows = model.files.read_used_photos()
    classes = model.read_record().photos.classes
    wrong = list_wrong_photos(list_tested_photos(rows, classes))
    files = PhotoFiles.from_rows(rows, model.folder)
    marked = []
    for number, photo in enumerate(wrong[:MAX_MARKED], 1):
        picture = None
        with suppress(OSError, UndecodedError):
            if files.may_show(photo.path):
                picture = make_preview(upright(photo.path))
        title = (
            f'{number}: {photo.name}, {photo.label}? {photo.prediction} '
            f'({photo.p_prediction:.0%})'
        )
        marked.append(MarkedPhoto(photo.path, photo.label, title, picture))
    return MarkedPhotos(marked, classes)
