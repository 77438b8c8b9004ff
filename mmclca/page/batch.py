# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tab to classify many photos, with a table to download.

:mod:`.batch_layout` shows it.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mmclca.apis import find_images, write_table
from mmclca.apis.result_counts import describe_counts
from mmclca.errors import Error
from mmclca.fitting.new_photos import choose_references, describe_shift
from mmclca.languages import text
from mmclca.utils.spreadsheets import NEEDED

from .handlers import shown_problems
from .identify import IdentifyTab
from .loaded_model import LoadedModel, ModelVersion
from .markdown import escape_markdown
from .prediction import BATCH
from .uploads import UploadedFolder, opened


@dataclass(frozen=True)
class BatchView:
    """Values for the tab.

    Args:
        state (str): Progress; empty at the end.
        result (str): Number of photos per class in Markdown; empty before
            the end.
        tables (list[Path]): Tables with one row per photo.
    """

    state: str = ''
    result: str = ''
    tables: list[Path] = field(default_factory=list)


class BatchTab:
    """Event handler for the tab.

    Args:
        identify_tab (IdentifyTab): Tab with the model and the uploads.
    """

    def __init__(self, identify_tab: IdentifyTab):
        self.identify_tab = identify_tab

    def classify(
        self,
        upload: list | None,
        paths: str,
        version: ModelVersion | None = None,
    ) -> Iterator[BatchView]:
        """Yield progress, and then the tables for a folder or ZIP archive.

        Its photos are deleted afterwards. ``paths`` are the paths in the
        browser, as JSON.
        """
        view = BatchView()
        with shown_problems():
            model = self.identify_tab.require_model(version)
            uploads = self.identify_tab.uploads
            with opened(upload, paths, uploads) as folder:
                tables = uploads / 'classified'
                tables.mkdir(exist_ok=True)
                for view in tabulate_folder(model, folder, tables):
                    yield view
        if not view.result:  # a problem
            yield BatchView()


def tabulate_folder(
    model: LoadedModel, folder: UploadedFolder, tables: Path
) -> Iterator[BatchView]:
    """Yield progress, and then the predictions for photos in a folder.

    Args:
        model (LoadedModel): The model.
        folder (UploadedFolder): Photos, in folders or not.
        tables (Path): Folder for the tables.

    Raises:
        Error: If the folder is empty.
    """
    photos, inferencer = find_images([folder.path]), model.inferencer
    if not photos:
        raise Error(text('page.many.no_photo', folder=folder.title))
    results: list[dict[str, Any]] = []
    stream = inferencer.stream(
        photos, BATCH, references=choose_references(inferencer)
    )
    for path, result in zip(photos, stream, strict=True):
        # the copy of the upload is deleted: its path means nothing
        results.append(result | dict(image=os.path.relpath(path, folder.path)))
        if len(results) % BATCH == 0:
            number, count = len(results), len(photos)
            yield BatchView(
                text('page.classified', number=number, count=count)
            )
    endings = ['.xlsx', '.csv'] if find_spec(NEEDED) else ['.csv']
    files = [tables / f'{folder.title} classified{x}' for x in endings]
    for file in files:
        write_table(results, file, inferencer.classes)
    shift = ''
    if model.files is not None:
        read = [result for result in results if 'error' not in result]
        consequence = text('page.many.shifted')
        shift = describe_shift(model.files, inferencer, read, consequence)
    notes = [*folder.notes, describe_counts(results), *filter(None, [shift])]
    yield BatchView(result=describe_batch(results, notes), tables=files)


def describe_batch(
    results: Sequence[dict[str, Any]], notes: Sequence[str]
) -> str:
    """Count the photos per class in Markdown, after notes."""
    counts = Counter(map(name_result, results))
    rows = [
        f'| {escape_markdown(name)} | {number} |'
        for name, number in counts.most_common()
    ]
    heading = text('page.many.columns')
    table = '\n'.join([heading, '| --- | ---: |', *rows])
    notes = [escape_markdown(note) for note in notes]
    return '\n\n'.join([*notes, table, text('page.many.help')])


def name_result(result: dict[str, Any]) -> str:
    """Name the predicted class, or what is wrong with a photo."""
    if 'error' in result:
        return text('page.many.unreadable')
    if result['known'] is False:
        return text('page.many.unknown')
    return result['pred_class']
