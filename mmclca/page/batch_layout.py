# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Components to classify many photos."""

from collections.abc import Iterator
from dataclasses import dataclass

import gradio as gr

from mmclca.languages import text

from .batch import BatchTab, BatchView
from .folder_input import FolderInput, create_folder_input
from .language import label
from .loaded_model import ModelVersion


@dataclass(frozen=True)
class BatchComponents:
    """Components in their order on the page."""

    photos: FolderInput
    state: gr.Markdown
    result: gr.Markdown
    tables: gr.File

    @property
    def outputs(self) -> list:
        """Components with values for a batch."""
        return [self.photos.folder, self.state, self.tables, self.result]

    def show(self, view: BatchView) -> dict:
        """Return new values by component."""
        tables = [str(path) for path in view.tables]
        return {
            self.photos.folder: None,  # ready for the next folder
            self.state: view.state,
            self.tables: gr.File(
                tables or None,
                label=text('page.many.tables'),
                visible=bool(tables),
            ),
            self.result: view.result,
        }

    def clear(self) -> dict:
        """Return empty values, by component."""
        return self.show(BatchView())


def build_batch(tab: BatchTab, version: gr.State) -> BatchComponents:
    """Create the components in the current tab, and bind their events.

    ``version`` is the key for the chosen model.
    """
    gr.Markdown(label('label.many.introduction'))
    parts = BatchComponents(
        photos=create_folder_input('batch', 'batch_zip'),
        state=gr.Markdown(elem_id='batch_state'),
        tables=gr.File(
            visible=False, file_count='multiple', elem_id='batch_tables'
        ),
        result=gr.Markdown(elem_id='batch_result'),
    )

    def classify(
        upload: list | None, paths: str, chosen: ModelVersion | None
    ) -> Iterator[dict]:
        for view in tab.classify(upload, paths, chosen):
            yield parts.show(view)

    parts.photos.bind_model(classify, [version], parts.outputs)
    return parts
