# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Components to upload a folder or ZIP archive of photos."""

from collections.abc import Callable
from dataclasses import dataclass

import gradio as gr

from .handlers import bind_model
from .language import label


@dataclass(frozen=True)
class FolderInput:
    """Drop zone for a folder, and a button for its ZIP archive.

    ``paths`` gets the paths in the browser from ``form.js``, which finds the
    zone and the paths by their classes, since Gradio drops the folders of
    files.
    """

    folder: gr.File
    archive: gr.UploadButton
    paths: gr.Textbox

    @property
    def sources(self) -> list:
        """Components with an event ``upload``."""
        return [self.folder, self.archive]

    def bind_model(
        self, handler: Callable, inputs: list, outputs: list
    ) -> None:
        """Bind a handler of an upload, its paths and inputs to a model."""
        for source in self.sources:
            bind_model(
                source.upload,
                handler,
                [source, self.paths, *inputs],
                outputs,
                preprocess=False,  # Gradio would copy the files
            )


def create_folder_input(zone: str, button: str) -> FolderInput:
    """Create the components in the current block.

    Args:
        zone (str): HTML id of the drop zone.
        button (str): HTML id of the button.
    """
    return FolderInput(
        folder=gr.File(
            show_label=False,
            file_count='directory',
            height=160,
            elem_id=zone,
            elem_classes='photo-folder',
        ),
        archive=gr.UploadButton(
            label('label.folder.zip'),
            file_count='multiple',
            file_types=['.zip'],
            elem_id=button,
        ),
        paths=gr.Textbox(visible='hidden', elem_classes='paths'),
    )
