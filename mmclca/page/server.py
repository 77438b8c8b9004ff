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
FOLDER = 'mmclca-page-'  # how names of folders of uploads begin
MAX_MEGABYTES, MAX_FILES = 1000, 5000  # of uploads that are kept
QUEUE_SIZE = 20  # requests in the queue; further ones are refused


@contextmanager
def served(
    inferencer: TokenReductionInferencer,
    folder: Path,
    port: int | None = None,
    host: str = HOST,
    name: str = '',
    gallery: Gallery | None = None,
) -> Iterator[tuple[str, gr.Blocks]]:
    """Serve the page of a trained model until the context is left.

    Synthetic leaves to try are offered for a model of ``make demo`` only.

    Args:
        inferencer (TokenReductionInferencer): The model.
        folder (Path): Folder of uploads, see :func:`uploads_folder`.
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
    """Make a folder for uploads; remove those of pages that were killed."""
    for lock in Path(gettempdir()).glob(f'{FOLDER}*/lock'):
        # another user may have put a link there
        if lock.parent.lstat().st_uid == os.getuid():
            with suppress(Timeout, OSError), FileLock(lock, timeout=0):
                shutil.rmtree(lock.parent)
    folder = TemporaryDirectory(prefix=FOLDER)
    with folder as name, FileLock(Path(name, 'lock')):
        yield Path(name)


@contextmanager
def uploads_folder(host: str = HOST) -> Iterator[Path]:
    """Make a temporary folder, and have Gradio keep uploads in it.

    For processes of their own: until the context is left, environment
    variables name the folder, and exclude ``host`` from proxies. The folder
    is removed then, or by the next page if this one is killed.
    """
    others = os.environ.get('no_proxy') or os.environ.get('NO_PROXY')
    near = ','.join(filter(None, (others, host, 'localhost')))
    with _private_folder() as folder:
        changes = dict(GRADIO_TEMP_DIR=str(folder), no_proxy=near)
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        try:
            yield folder
        finally:
            for name in changes:
                del os.environ[name]
            known = {k: x for k, x in before.items() if x is not None}
            os.environ.update(known)


class RequestLimits:
    """Refuses requests that are too large, and uploads if many are kept.

    Args:
        app (Callable): The ASGI application that answers the others.
        folder (Path): Folder of the uploads.
    """

    def __init__(self, app: Callable, folder: Path):
        self.app, self.folder = app, folder

    async def __call__(self, scope, receive, send) -> None:
        """Answer a request as ASGI prescribes."""
        app = self.app
        if scope.get('method') == 'POST':
            problem = self._problem(dict(scope['headers']), scope['path'])
            if problem:
                app = JSONResponse(dict(detail=problem), 413)
        await app(scope, receive, send)

    def _problem(self, headers: dict[bytes, bytes], path: str) -> str:
        size = headers.get(b'content-length', b'')
        # a form needs some bytes besides its file
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
    """Start to serve, in another thread; the address."""
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
