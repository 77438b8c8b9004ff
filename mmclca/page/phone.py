# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Show the app of a model on a phone in the same network."""

import shutil
from contextlib import ExitStack
from html import escape
from pathlib import Path
from threading import Lock

from mmclca.deployment.app_server import AppServer, make_qr_picture
from mmclca.languages import text

from .models import KeptModel
from .process import run_task


class PhoneServer:
    """Server of the app of one model, until the page ends.

    Args:
        folder (Path): Folder for the app.
    """

    def __init__(self, folder: Path):
        self.folder, self._lock = folder, Lock()
        self._served, self._version = ExitStack(), ''
        self._server: AppServer | None = None

    def open(self, model: KeptModel) -> str:
        """Export and serve the app of a model; return its address as HTML.

        Raises:
            ImportError: If a package is missing.
            OSError: If the app cannot be served.
            Error: If this computer is on no network, or the model cannot be
                exported.
        """
        with self._lock:
            server = self._server = self._server or AppServer(port=0)
            time = model.files.model.stat().st_mtime_ns
            version = f'{model.name} {time}'
            if version != self._version:
                self._serve(server, model)
                self._version = version
        steps = text(
            'page.phone.steps',
            address=server.address,
            certificate=server.certificate_address,
        )
        picture = make_qr_picture(server.address)
        alt = escape(text('page.phone.code', address=server.address))
        return f'<p><img src="{picture}" alt="{alt}"></p><p>{steps}</p>'

    def _serve(self, server: AppServer, model: KeptModel) -> None:
        """Replace the served app."""
        out = self.folder / 'web'
        settings = dict(
            folder=str(model.files.path),
            format_name='web',
            out=str(out),
            photos=str(model.photos),
            name=model.name,
        )
        self._served.close()
        self._version = ''
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        run_task('export', settings)
        files = [path for path in out.rglob('*') if path.is_file()]
        self._served.enter_context(server.serving(out, files))

    def close(self) -> None:
        """Stop the server."""
        self._served.close()
        if self._server:
            self._server.server_close()
            self._server = None
