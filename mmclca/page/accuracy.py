# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tab of the page that measures a model on photos sorted by class.

:mod:`.accuracy_layout` shows it.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mmclca.fitting.sorted_folder import (
    ClassifiedPhoto,
    FolderTest,
    add_shift,
    classify_sorted,
    sort_photos,
)
from mmclca.fitting.sorted_folder_text import folder_test_rows
from mmclca.languages import text

from .handlers import shown_problems
from .identify import IdentifyTab
from .loaded_model import LoadedModel, ModelVersion
from .markdown import escape_markdown, list_facts
from .prediction import BATCH
from .uploads import opened


@dataclass(frozen=True)
class AccuracyView:
    """Values of the tab.

    Args:
        state (str): Progress; empty at the end.
        result (str): Accuracy, recalls and confusions in Markdown; empty
            before the end.
        table (Path | None): Table with one row per photo.
    """

    state: str = ''
    result: str = ''
    table: Path | None = None


class AccuracyTab:
    """Event handler of the tab.

    Args:
        identify_tab (IdentifyTab): Tab with the model and the uploads.
    """

    def __init__(self, identify_tab: IdentifyTab):
        self.identify_tab = identify_tab

    def measure(
        self,
        upload: list | None,
        paths: str,
        version: ModelVersion | None = None,
    ) -> Iterator[AccuracyView]:
        """Yield progress, and then the accuracy on a folder or ZIP archive.

        Its photos are deleted afterwards. ``paths`` are the paths in the
        browser, as JSON.
        """
        view = AccuracyView()
        with shown_problems():
            for view in self._measure(upload, paths, version):
                yield view
        if not view.result:  # a problem
            yield AccuracyView()

    def _measure(
        self, upload: list | None, paths: str, version: ModelVersion | None
    ) -> Iterator[AccuracyView]:
        model = self.identify_tab.require_model(version)
        uploads = self.identify_tab.uploads
        with opened(upload, paths, uploads) as folder:
            tables = uploads / 'tested'
            tables.mkdir(exist_ok=True)
            table = tables / f'{folder.title} tested.csv'
            yield from measure_folder(model, folder.path, folder.notes, table)


def measure_folder(
    model: LoadedModel, folder: Path, notes: list[str], table: Path
) -> Iterator[AccuracyView]:
    """Yield progress, and then the accuracy of a model on a folder.

    Args:
        model (LoadedModel): The model.
        folder (Path): Folder with one folder per class.
        notes (list[str]): What users should know about their upload.
        table (Path): Table to write, with one row per photo.

    Raises:
        Error: If the model has no record, or as in :func:`.classify_sorted`.
    """
    files = model.require_files()
    record = files.read_complete()
    photos = sort_photos(folder, record.photos.classes)
    tested: list[ClassifiedPhoto] = []
    for photo in classify_sorted(files, model.inferencer, photos, BATCH):
        # the copy of the upload is deleted: its path means nothing
        path = os.path.relpath(photo.result['image'], folder)
        tested.append(replace(photo, result=photo.result | dict(image=path)))
        if len(tested) % BATCH == 0:
            total = len(photos.paths)
            state = text('page.classified', number=len(tested), count=total)
            yield AccuracyView(state)
    test = FolderTest(record, photos, tested)
    test = add_shift(test, files, model.inferencer)
    test.write(table)
    yield AccuracyView(result=describe_test(test, notes), table=table)


def describe_test(test: FolderTest, notes: list[str]) -> str:
    """Describe a test in Markdown, after the notes on its upload."""
    parts = [escape_markdown(note) for note in notes]
    return '\n\n'.join([*parts, list_facts(folder_test_rows(test))])
