# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import gradio as gr

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.gallery import Gallery

from .blocks import MEGABYTES, Callbacks, about_model, build_page
from .leaves import examples_for

HOST = '127.0.0.1'
WAITING = 20  # requests in the queue; further ones are refused


@contextmanager
def served(
    inferencer: TokenReductionInferencer,
    port: int | None = None,
    host: str = HOST,
    name: str = '',
    gallery: Gallery | None = None,
) -> Iterator[tuple[str, gr.Blocks]]:
    """Serve the page of a trained model until the context is left.

    Uploads and drawn leaves lie in a temporary folder that is removed then.
    There are drawn leaves for a model of ``make demo`` only.

    Args:
        inferencer (TokenReductionInferencer): The model.
        port (int, optional): Port to listen at. Defaults to None, the first
            free one from 7860 on.
        host (str): Address to listen at. Defaults to ``HOST``, which this
            computer alone reaches; '0.0.0.0' is all of its addresses.
        name (str): Name of the checkpoint, to be shown. Defaults to ''.
        gallery (Gallery, optional): Of the model; the images most like a leaf
            are shown. Defaults to None: none are.

    Yields:
        tuple[str, gr.Blocks]: Address of the page, and the page.

    Raises:
        OSError: If the port is taken.
    """
    with (
        tempfile.TemporaryDirectory(prefix='mmclca_page_') as folder,
        patch.dict(os.environ, _environment(folder, host)),
    ):
        callbacks = Callbacks(inferencer, folder, gallery)
        classes = inferencer.classes
        about = about_model(name, classes)
        page = build_page(callbacks, examples_for(classes, folder), about)
        page.queue(max_size=WAITING)
        address = _launch(page, port, host)
        try:
            yield address, page
        finally:
            page.close(verbose=False)


def _environment(folder: str, host: str) -> dict[str, str]:
    """Return where Gradio keeps files, and that it reaches itself by no
    proxy."""
    others = os.environ.get('no_proxy') or os.environ.get('NO_PROXY')
    near = ','.join(filter(None, (others, host, 'localhost')))
    return dict(GRADIO_TEMP_DIR=folder, no_proxy=near)


def _launch(page: gr.Blocks, port: int | None, host: str) -> str:
    """Start to serve, in another thread; the address."""
    try:
        _, address, _ = page.launch(
            server_name=host,
            server_port=port,
            max_file_size=MEGABYTES * 2**20,
            footer_links=[],
            show_error=True,
            share=False,
            quiet=True,
            prevent_thread_lock=True,
        )
    except OSError as error:
        raise OSError(
            f'nothing can listen at {host}, port {port or "7860 to 7959"}: '
            'is the port taken, or the address not one of this computer? '
            'Give others with --port and --host'
        ) from error
    return address
