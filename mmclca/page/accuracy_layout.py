# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Components of the tab that measures a model on sorted photos."""

from collections.abc import Iterator
from dataclasses import dataclass

import gradio as gr

from .accuracy import AccuracyTab, AccuracyView
from .handlers import bind_model
from .limits import MAX_FILES, MAX_MEGABYTES, MEGABYTES
from .loaded_model import ModelVersion

INTRODUCTION = (
    '# Measure the accuracy on sorted photos\n'
    'Make one folder per class with the name of the class, and put these '
    'folders into one folder or ZIP archive. Take photos that the model was '
    'not trained on, such as those of another day. '
    f'Limits: {MAX_FILES:,} photos, {MEGABYTES} MB per photo, '
    f'{MAX_MEGABYTES:,} MB in total. Photos are deleted after the test.'
)


@dataclass(frozen=True)
class AccuracyComponents:
    """Components of the tab, in the order of the page.

    ``paths`` gets the paths in the browser from the script of the page.
    """

    folder: gr.File
    archive: gr.UploadButton
    state: gr.Markdown
    result: gr.Markdown
    table: gr.File
    paths: gr.Textbox

    @property
    def outputs(self) -> list:
        """Components with values for a test."""
        return [self.folder, self.state, self.result, self.table]

    def show(self, view: AccuracyView) -> dict:
        """Return new values by component."""
        table = str(view.table) if view.table else None
        return {
            self.folder: None,  # the drop zone is ready for the next folder
            self.state: view.state,
            self.result: view.result,
            self.table: gr.File(table, visible=table is not None),
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

    for source in (parts.folder, parts.archive):
        bind_model(
            source.upload,
            measure,
            [source, parts.paths, version],
            parts.outputs,
            preprocess=False,  # Gradio would copy the files
        )
    return parts


def _create_components() -> AccuracyComponents:
    """Create the components in the current tab."""
    gr.Markdown(INTRODUCTION)
    folder = gr.File(
        show_label=False, file_count='directory', height=160, elem_id='sorted'
    )
    archive = gr.UploadButton(
        'Or choose a ZIP archive',
        file_count='multiple',
        file_types=['.zip'],
        elem_id='sorted_zip',
    )
    state = gr.Markdown(elem_id='test_state')
    result = gr.Markdown(elem_id='test_result')
    table = gr.File(
        label='Table with one row per photo',
        visible=False,
        elem_id='test_table',
    )
    paths = gr.Textbox(
        visible='hidden', elem_id='sorted_paths', elem_classes='paths'
    )
    return AccuracyComponents(folder, archive, state, result, table, paths)
