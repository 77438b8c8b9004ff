# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import gradio as gr
from filelock import FileLock, Timeout
from starlette.middleware import Middleware
from starlette.responses import JSONResponse

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.gallery import Gallery

from .blocks import MEGABYTES, Callbacks, about_model, build_page
from .photos import examples_for

HOST = '127.0.0.1'
FOLDER = 'mmclca-page-'  # prefix of upload folders
MAX_MEGABYTES, MAX_FILES = 1000, 5000  # of all stored uploads
QUEUE_SIZE = 20  # further requests are refused


@contextmanager
def served(
    inferencer: TokenReductionInferencer,
    folder: Path,
    port: int | None = None,
    host: str = HOST,
    name: str = '',
    gallery: Gallery | None = None,
) -> Iterator[tuple[str, gr.Blocks]]:
    """Serve the page of a trained model within a context.

    Uploads go to ``folder``, see :func:`uploads_folder`. Without a port, the
    first free one from 7860 is used. The default host is reachable from this
    computer only, '0.0.0.0' from the network. ``name`` is the checkpoint name
    shown on the page. Yield the address and the page; raise an ``OSError`` if
    the port is in use.
    """
    callbacks = Callbacks(inferencer, folder, gallery)
    classes = inferencer.classes
    about = about_model(name, classes)
    page = build_page(callbacks, examples_for(classes, folder), about)
    page.queue(max_size=QUEUE_SIZE)
    address = _launch(page, port, host, folder)
    try:
        yield address, page
    finally:
        page.close(verbose=False)


@contextmanager
def _private_folder() -> Iterator[Path]:
    """Create an upload folder; remove the folders of killed pages."""
    for lock in Path(gettempdir()).glob(f'{FOLDER}*/lock'):
        # keep links and folders created by another user
        if lock.parent.lstat().st_uid == os.getuid():
            with suppress(Timeout, OSError), FileLock(lock, timeout=0):
                shutil.rmtree(lock.parent)
    folder = TemporaryDirectory(prefix=FOLDER)
    with folder as name, FileLock(Path(name, 'lock')):
        yield Path(name)


@contextmanager
def uploads_folder(host: str = HOST) -> Iterator[Path]:
    """Create a temporary folder and set Gradio's environment variables.

    Within the context, Gradio stores uploads in the folder and connects to
    ``host`` without a proxy. Variables are process-wide, so only a command
    should use it. The folder is removed at the end, or by the next page if
    this process is killed.
    """
    before = dict(os.environ)
    others = before.get('no_proxy') or before.get('NO_PROXY')
    near = ','.join(filter(None, (others, host, 'localhost')))
    with _private_folder() as folder:
        os.environ.update(GRADIO_TEMP_DIR=str(folder), no_proxy=near)
        try:
            yield folder
        finally:  # Gradio sets further variables
            os.environ.clear()
            os.environ.update(before)


class RequestLimits:
    """ASGI middleware that refuses large requests and excess uploads."""

    def __init__(self, app: Callable, folder: Path):
        self.app, self.folder = app, folder

    async def __call__(self, scope, receive, send) -> None:
        """Refuse a request with status 413, or pass it to the application."""
        app = self.app
        if scope.get('method') == 'POST':
            problem = self._problem(dict(scope['headers']), scope['path'])
            if problem:
                app = JSONResponse(dict(detail=problem), 413)
        await app(scope, receive, send)

    def _problem(self, headers: dict[bytes, bytes], path: str) -> str:
        """Return the reason for a refusal, or an empty text."""
        size = headers.get(b'content-length', b'')
        # a form is slightly larger than its file
        if not size.isdigit() or int(size) > (MEGABYTES + 1) * 2**20:
            return f'The file is too large: the limit is {MEGABYTES} MB.'
        if not path.endswith('/upload'):
            return ''
        files = [x.stat() for x in self.folder.rglob('*')]
        used = sum(file.st_size for file in files) / 2**20
        if len(files) > MAX_FILES or used > MAX_MEGABYTES:
            return 'Too many photos are stored: try again in an hour.'
        return ''


def _launch(page: gr.Blocks, port: int | None, host: str, folder: Path) -> str:
    """Start the server in another thread; return the address."""
    try:
        _, address, _ = page.launch(
            server_name=host,
            server_port=port,
            max_file_size=MEGABYTES * 2**20,
            app_kwargs=dict(
                middleware=[Middleware(RequestLimits, folder=folder)]
            ),
            footer_links=[],
            show_error=True,
            share=False,
            quiet=True,
            prevent_thread_lock=True,
        )
    except OSError as error:
        raise OSError(
            f'cannot listen on {host}, port {port or "7860 to 7959"}: change '
            '--port or --host'
        ) from error
    return address
