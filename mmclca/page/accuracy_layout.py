# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Components of the tab that measures a model on sorted photos."""

from collections.abc import Iterator
from dataclasses import dataclass

import gradio as gr

from mmclca.languages import text

from .accuracy import AccuracyTab, AccuracyView
from .folder_input import FolderInput, create_folder_input
from .language import label
from .loaded_model import ModelVersion


@dataclass(frozen=True)
class AccuracyComponents:
    """Components of the tab, in the order of the page."""

    photos: FolderInput
    state: gr.Markdown
    result: gr.Markdown
    table: gr.File

    @property
    def outputs(self) -> list:
        """Components with values for a test."""
        return [self.photos.folder, self.state, self.result, self.table]

    def show(self, view: AccuracyView) -> dict:
        """Return new values by component."""
        table = str(view.table) if view.table else None
        return {
            self.photos.folder: None,  # ready for the next folder
            self.state: view.state,
            self.result: view.result,
            self.table: gr.File(
                table, label=text('page.test.table'), visible=table is not None
            ),
        }

    def clear(self) -> dict:
        """Return empty values, by component."""
        return self.show(AccuracyView())


def build_accuracy(tab: AccuracyTab, version: gr.State) -> AccuracyComponents:
    """Create the components in the current tab, and bind their events.

    ``version`` is the key for the chosen model.
    """
    parts = _create_components()

    def measure(
        upload: list | None, paths: str, chosen: ModelVersion | None
    ) -> Iterator[dict]:
        for view in tab.measure(upload, paths, chosen):
            yield parts.show(view)

    parts.photos.bind_model(measure, [version], parts.outputs)
    return parts


def _create_components() -> AccuracyComponents:
    """Create the components in the current tab."""
    gr.Markdown(label('label.test.introduction'))
    photos = create_folder_input('sorted', 'sorted_zip')
    state = gr.Markdown(elem_id='test_state')
    result = gr.Markdown(elem_id='test_result')
    table = gr.File(visible=False, elem_id='test_table')
    return AccuracyComponents(photos, state, result, table)
