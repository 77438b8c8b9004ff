# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Measure a fitted model on a folder with one folder of photos per class."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.output import prediction_cells
from mmclca.checkpoints.gate.photo_table import compute_sha256
from mmclca.datasets.photos import LabeledImages, list_images
from mmclca.datasets.photos.app_archive import read_class_names
from mmclca.datasets.photos.spellings import normalize_name
from mmclca.errors import Error
from mmclca.evaluation import wilson
from mmclca.languages import text
from mmclca.utils.messages import join_first, track
from mmclca.utils.spreadsheets import write_spreadsheet

from .accuracy_parts import ClassRecall, Measurement
from .fit_folder import FitFolder
from .new_photos import choose_references, describe_shift
from .record import FitRecord

COLUMNS = ('image', 'class', 'correct', 'pred_class', 'pred_score', 'known')
COLUMNS = (*COLUMNS, 'known_score', 'in_training', 'error')


@dataclass(frozen=True)
class SortedPhotos:
    """Photos in folders that are named after classes of a model.

    Args:
        source (str): Folder of the folders.
        paths (list[str]): Photos.
        labels (list[str]): Their classes.
        unknown (dict[str, int]): Photos per folder without such a name.
        without_folder (int): Photos outside such folders.
        empty (list[str]): Folders without photos.
    """

    source: str
    paths: list[str]
    labels: list[str]
    unknown: dict[str, int]
    without_folder: int
    empty: list[str]


@dataclass(frozen=True)
class ClassifiedPhoto:
    """Photo with its class and its prediction.

    Args:
        label (str): Class.
        in_training (bool): Whether the model was trained on its content.
        result (dict): Result of :class:`TokenReductionInferencer`.
    """

    label: str
    in_training: bool
    result: dict[str, Any]

    @property
    def is_readable(self) -> bool:
        """Whether the photo was classified."""
        return 'error' not in self.result

    @property
    def is_correct(self) -> bool:
        """Whether the predicted class is the class of the photo."""
        return self.is_readable and self.result['pred_class'] == self.label


@dataclass(frozen=True)
class Confusion:
    """Photos of a class that are misclassified as another one."""

    label: str
    prediction: str
    errors: int
    photos: int


@dataclass(frozen=True)
class FolderTest:
    """Accuracy of a model on sorted photos, next to the promised one.

    Args:
        record (FitRecord): Record of the model.
        photos (SortedPhotos): Sorted photos.
        tested (list[ClassifiedPhoto]): All predictions.
        shift (str): Warning if the photos differ from the training photos.
            Defaults to ''.
    """

    record: FitRecord
    photos: SortedPhotos
    tested: list[ClassifiedPhoto]
    shift: str = ''

    @cached_property
    def counted(self) -> list[ClassifiedPhoto]:
        """Readable photos that were not in training, or all if all were."""
        readable = [photo for photo in self.tested if photo.is_readable]
        return [x for x in readable if not x.in_training] or readable

    @property
    def measurement(self) -> Measurement:
        """Accuracy with its Wilson interval; each photo counts once."""
        share, low, high = _measure(self.counted)
        return Measurement(len(self.counted), share, low, high)

    @property
    def per_class(self) -> dict[str, ClassRecall]:
        """Recall per tested class, lowest first."""
        recalls = {}
        for label in sorted({photo.label for photo in self.counted}):
            photos = [x for x in self.counted if x.label == label]
            share, low, high = _measure(photos)
            recalls[label] = ClassRecall(len(photos), share, low, high)
        return dict(sorted(recalls.items(), key=lambda x: x[1].recall or 0))

    @property
    def confusions(self) -> list[Confusion]:
        """Confused classes, most frequent first."""
        sizes = Counter(photo.label for photo in self.counted)
        pairs = Counter(
            (photo.label, photo.result['pred_class'])
            for photo in self.counted
            if not photo.is_correct
        )
        return [
            Confusion(label, prediction, number, sizes[label])
            for (label, prediction), number in pairs.most_common()
        ]

    def write(self, path: Path) -> None:
        """Write a table with one row per photo, .csv or .xlsx."""
        write_spreadsheet(path, self._list_rows())

    def _list_rows(self) -> Iterator[list]:
        answers = {True: 'yes', False: 'no'}
        yield [*COLUMNS]
        for photo in self.tested:
            yield [
                photo.result['image'],
                photo.label,
                answers[photo.is_correct] if photo.is_readable else '',
                *prediction_cells(photo.result),
                answers[photo.in_training],
                photo.result.get('error', ''),
            ]


def _measure(photos: Sequence[ClassifiedPhoto]) -> tuple[float, float, float]:
    """Return the share of correct photos, and its Wilson interval."""
    share = sum(photo.is_correct for photo in photos) / len(photos)
    low, high = wilson(share, len(photos))
    return share, low, high


def measure_sorted_folder(
    model: str | PathLike,
    folder: str | PathLike,
    device: str | None = None,
    batch_size: int = 32,
) -> FolderTest:
    """Measure a fitted model on a folder with one folder per class.

    Args:
        model (str | Path): Model folder.
        folder (str | Path): Folder with folders of photos, named after
            classes of the model; other folders are left out.
        device (str, optional): Device. Defaults to None: a GPU if available.
        batch_size (int): Photos per batch. Defaults to 32.

    Returns:
        FolderTest: Accuracy and predictions.

    Raises:
        FileNotFoundError: If a folder does not exist.
        Error: If no folder has the name of a class, or no photo can be read.
    """
    files = FitFolder.open(model)
    record = files.read_complete()
    photos = sort_photos(folder, record.photos.classes)
    inferencer = TokenReductionInferencer(files.path, device=device)
    tested = track(
        classify_sorted(files, inferencer, photos, batch_size),
        'Classifying',
        len(photos.paths),
    )
    test = FolderTest(record, photos, list(tested))
    return add_shift(test, files, inferencer)


def add_shift(
    test: FolderTest, files: FitFolder, inferencer: TokenReductionInferencer
) -> FolderTest:
    """Compare the photos of a test with the training photos of its model.

    Args:
        test (FolderTest): The test.
        files (FitFolder): Model folder.
        inferencer (TokenReductionInferencer): Its loaded model.
    """
    new = [photo.result for photo in test.tested if not photo.in_training]
    consequence = text('test.shift_promise')
    return replace(
        test, shift=describe_shift(files, inferencer, new, consequence)
    )


def classify_sorted(
    files: FitFolder,
    inferencer: TokenReductionInferencer,
    photos: SortedPhotos,
    batch_size: int = 32,
) -> Iterator[ClassifiedPhoto]:
    """Yield the prediction for each photo.

    Args:
        files (FitFolder): Model folder.
        inferencer (TokenReductionInferencer): Its loaded model.
        photos (SortedPhotos): Photos.
        batch_size (int): Photos per batch. Defaults to 32.

    Raises:
        Error: After the last photo, if none could be read.
    """
    digests = files.read_used_digests()
    results = inferencer.stream(
        photos.paths, batch_size, references=choose_references(inferencer)
    )
    any_readable = False
    for path, label, result in zip(
        photos.paths, photos.labels, results, strict=True
    ):
        in_training = compute_sha256(path) in digests
        photo = ClassifiedPhoto(label, in_training, result)
        any_readable |= photo.is_readable
        yield photo
    if not any_readable:
        raise Error(
            f'{photos.source}: all {len(photos.paths)} photos are unreadable'
        )


def sort_photos(
    folder: str | PathLike, classes: Sequence[str]
) -> SortedPhotos:
    """Find the photos in folders that are named after classes.

    Raises:
        FileNotFoundError: If the folder does not exist.
        Error: If such folders are missing.
    """
    root = Path(os.path.abspath(os.path.expanduser(folder)))
    if root.is_file():
        raise Error(
            f'{root} is a file; give a folder with one folder of photos per '
            'class'
        )
    images = list_images(root)
    images = replace(images, source=str(root))
    spellings = {normalize_name(name): name for name in classes}
    names = [
        None if name is None else spellings.get(normalize_name(name))
        for name in images.names
    ]
    if not any(names):
        raise Error(_explain_no_class(root, images, classes))
    pairs = zip(images.paths, names, strict=True)
    known = [(path, name) for path, name in pairs if name is not None]
    unknown = Counter(
        name
        for name, known_name in zip(images.names, names, strict=True)
        if name is not None and known_name is None
    )
    filled = {Path(x).relative_to(root).parts[0] for x in images.paths}
    return SortedPhotos(
        source=str(root),
        paths=[path for path, _ in known],
        labels=[name for _, name in known],
        unknown=dict(unknown),
        without_folder=images.names.count(None),
        empty=sorted(
            entry.name
            for entry in root.iterdir()
            if entry.is_dir()
            and entry.name not in filled
            and not entry.name.startswith('.')
        ),
    )


def is_sorted(folder: str | PathLike, classes: Sequence[str]) -> bool:
    """Return whether a folder has folders named after two classes or more.

    False if it has damaged facts of the phone app.
    """
    root = Path(os.path.expanduser(folder))
    if not root.is_dir():
        return False
    try:
        by_folder = read_class_names(root)
    except Error:
        return False
    names = [x.name for x in root.iterdir() if x.is_dir()]
    found = {normalize_name(by_folder.get(name, name)) for name in names}
    return len(found & {*map(normalize_name, classes)}) > 1


def _explain_no_class(
    root: Path, images: LabeledImages, classes: Sequence[str]
) -> str:
    """Return why no photo has a class, and a remedy."""
    nested = [x for x in root.iterdir() if is_sorted(x, classes)]
    if nested:
        return f'{root} has no class folders; give {min(nested)}'
    expected = f'expected folders named {join_first(classes, 3)}'
    names = sorted({name for name in images.names if name is not None})
    if names:
        return (
            f'{root}: no folder has the name of a class, found '
            f'{join_first(names, 3)}; {expected}'
        )
    return f'{root} has photos but no folders; {expected}'
