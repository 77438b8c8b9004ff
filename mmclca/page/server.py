# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from types import SimpleNamespace
from unittest.mock import patch

import gradio as gr
from filelock import FileLock, Timeout
from gradio import queueing, routes
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import JSONResponse

from mmclca.languages import text, use_language
from mmclca.utils.messages import warn

from .blocks import CSS, build_page
from .form import FitForm
from .form_layout import SCRIPT
from .identify import IdentifyTab
from .language import HEADER, PageLanguage, find_language, list_translations
from .limits import MAX_FILES, MAX_MEGABYTES, MEGABYTES, MIB, why_full

HOST = '127.0.0.1'
FOLDER = 'mmclca-page-'  # prefix of upload folders
START_SECONDS = 60
QUEUE_SIZE = 64  # further requests are refused
# Gradio needs inline scripts and styles, and shows pictures as blob: or data:
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; "
    "font-src 'self' data:; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    'Content-Security-Policy': POLICY,
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'same-origin',
}


@contextmanager
def serve(
    identify_tab: IdentifyTab,
    port: int | None = None,
    host: str = HOST,
    auth: tuple[str, str] | None = None,
    form: FitForm | None = None,
    language: str | None = None,
) -> Iterator[tuple[str, gr.Blocks]]:
    """Serve the page of a model within a context, with a form to fit it.

    Uploads go to a folder, see :func:`uploads_folder`. Without a port, the
    first free one from 7860 is used. The default host is reachable from this
    computer only, '0.0.0.0' from the network. ``auth`` is a name and a
    password to ask for. Without a ``language``, the browser chooses it.
    Yield the address and the page; raise an ``OSError`` if the port is in use.
    """
    page = build_page(identify_tab, form)
    page.queue(max_size=QUEUE_SIZE)
    with _errors_in_one_line():
        model = identify_tab.model
        takes_folders = form or (model and model.files)
        megabytes = MAX_MEGABYTES if takes_folders else MEGABYTES
        address = _launch(
            page, port, host, auth, identify_tab.uploads, megabytes, language
        )
        try:
            yield address, page
        finally:
            page.close(verbose=False)
            if form:
                form.job.cancel()
                form.phone.close()


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    """Let Gradio print errors of requests without a traceback."""
    quiet = SimpleNamespace(print_exc=_warn_of_error)
    with (
        patch.object(queueing, 'traceback', quiet),
        patch.object(routes, 'traceback', quiet),
    ):
        yield


def _warn_of_error() -> None:
    error = sys.exc_info()[1]
    warn(f'a request to the page failed ({type(error).__name__}: {error})')


@contextmanager
def _private_folder() -> Iterator[Path]:
    """Create an upload folder; remove the folders of killed pages."""
    for lock in Path(gettempdir()).glob(f'{FOLDER}*/lock'):
        with suppress(Timeout, OSError):
            if _is_old(lock):
                with FileLock(lock, timeout=0):
                    pass
                shutil.rmtree(lock.parent)  # Windows keeps locked files
    # a photo that is still open cannot be removed on Windows
    folder = TemporaryDirectory(prefix=FOLDER, ignore_cleanup_errors=True)
    with folder as name, FileLock(Path(name, 'lock')):
        yield Path(name)


def _is_old(lock: Path) -> bool:
    """Whether this user created a lock file long before now.

    A page that starts at the same time may not have locked its file yet.
    """
    # keep links and folders created by another user; on Windows, all users
    # have temporary folders of their own
    is_own = sys.platform == 'win32' or (
        lock.parent.lstat().st_uid == os.getuid()
    )
    return is_own and time.time() - lock.lstat().st_mtime > START_SECONDS


@contextmanager
def uploads_folder(host: str = HOST) -> Iterator[Path]:
    """Create a temporary folder and set Gradio's environment variables.

    Within the context, Gradio stores uploads in the folder and connects to
    ``host`` without a proxy. Variables are process-wide, so only a command
    should use it. The folder is removed at the end, or by the next page if
    this process is killed.
    """
    before = dict(os.environ)
    present = before.get('no_proxy') or before.get('NO_PROXY')
    hosts = ','.join(filter(None, (present, host, 'localhost')))
    with _private_folder() as folder:
        os.environ.update(GRADIO_TEMP_DIR=str(folder), no_proxy=hosts)
        try:
            yield folder
        finally:  # Gradio sets further variables
            os.environ.clear()
            os.environ.update(before)


class Guard:
    """ASGI middleware to limit requests and uploads, and add ``HEADERS``.

    An error is answered with status 500 and printed in one line.
    """

    def __init__(self, app: Callable, folder: Path, megabytes: int):
        self.app, self.folder, self.megabytes = app, folder, megabytes

    async def __call__(self, scope, receive, send) -> None:
        """Refuse a request with status 413, or pass it to the application."""
        app, started = self.app, []

        async def send_guarded(message) -> None:
            if message['type'] == 'http.response.start':
                MutableHeaders(scope=message).update(HEADERS)
                started.append(True)
            await send(message)

        if scope.get('method') == 'POST':
            headers = Headers(scope=scope)
            with use_language(find_language(headers.get(HEADER, ''))):
                problem = await run_in_threadpool(
                    self._find_problem, headers, scope['path']
                )
            if problem:
                app = JSONResponse(dict(detail=problem), 413)
        try:
            await app(scope, receive, send_guarded)
        except Exception:
            _warn_of_error()
            if not started:
                detail = text('page.request.failed')
                failed = JSONResponse(dict(detail=detail), 500)
                await failed(scope, receive, send_guarded)

    def _find_problem(self, headers: Headers, path: str) -> str:
        """Return the reason for a refusal, or an empty text."""
        is_upload = path.endswith('/upload')
        limit = self.megabytes if is_upload else MEGABYTES
        length = headers.get('content-length', '')
        # a form is slightly larger than its file
        if not length.isdigit() or int(length) > (limit + 1) * MIB:
            return text('page.request.too_large', limit=limit)
        if not is_upload:
            return ''
        sizes = [*list_sizes(self.folder)]
        if len(sizes) > MAX_FILES or sum(sizes) > MAX_MEGABYTES * MIB:
            return text('page.request.too_many')
        return why_full(self.folder, int(length))


def list_sizes(folder: Path) -> Iterator[int]:
    """Yield the sizes of all files, which other threads may delete."""
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                yield os.lstat(f'{parent}/{name}').st_size


def _launch(
    page: gr.Blocks,
    port: int | None,
    host: str,
    auth: tuple[str, str] | None,
    folder: Path,
    megabytes: int,
    language: str | None = None,
) -> str:
    """Start the server in another thread; return the address."""
    script = SCRIPT.read_text('utf-8')
    middleware = [
        Middleware(PageLanguage, language=language),
        Middleware(Guard, folder=folder, megabytes=megabytes),
    ]
    try:
        _, address, _ = page.launch(
            # Gradio expects an IPv6 address as in a web address
            server_name=f'[{host}]' if ':' in host else host,
            server_port=port,
            auth=auth,
            max_file_size=megabytes * MIB,
            app_kwargs=dict(middleware=middleware),
            css=CSS,
            i18n=list_translations(),
            head=f'<script>{script}</script>',
            footer_links=[],
            show_error=True,
            share=False,
            quiet=True,
            prevent_thread_lock=True,
        )
    except OSError as error:
        raise OSError(
            f'cannot listen on {host}, port {port or "7860 to 7959"}: change '
            '`port` or `host`'
        ) from error
    return address.replace('[::]', '[::1]')  # of all addresses
