# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Serve a web app on the local network over https."""

import errno
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

from mmclca.errors import Error
from mmclca.utils.extras import require

from .local_certificate import EXTRA, Authority

PORT = 8443
CERTIFICATE = 'certificate.crt'  # address of the authority, to install it
SECONDS = 60  # of a connection without a request
# reasons of a browser that does not trust the certificate
_REFUSED = re.compile('UNKNOWN_CA|CERTIFICATE_UNKNOWN|BAD_CERTIFICATE')
_TYPES = {
    '.crt': 'application/x-x509-ca-cert',
    '.css': 'text/css',
    '.html': 'text/html',
    '.js': 'text/javascript',
    '.json': 'application/json',
    '.png': 'image/png',
    '.txt': 'text/plain',
    '.wasm': 'application/wasm',
    '.webmanifest': 'application/manifest+json',
}
# an address that is never used, to learn which interface leads to others
_ELSEWHERE = '192.0.2.1', 9


def find_address() -> str:
    """Return the IPv4 address of this computer on the local network.

    Raises:
        Error: If the computer is not on a network.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)  # sends nothing
            address = probe.getsockname()[0]
        except OSError:
            address = '127.0.0.1'
    if address.startswith('127.') or address == '0.0.0.0':
        raise Error(
            'this computer is on no network, only localhost was found; '
            'connect it to the network of the phone, such as its hotspot, or '
            'set `host` to the address of this computer'
        )
    return address


class _Handler(BaseHTTPRequestHandler):
    """Answer requests for the listed files."""

    protocol_version = 'HTTP/1.1'
    timeout = SECONDS
    server: 'AppServer'

    def do_GET(self) -> None:
        """Send a file."""
        self.wfile.write(self._start())

    def do_HEAD(self) -> None:
        """Send the headers of a file."""
        self._start()

    def _start(self) -> bytes:
        """Send status and headers; return the content."""
        name = unquote(urlsplit(self.path).path).removeprefix('/')
        content = self.server.read(name or 'index.html')
        media_type = _TYPES.get(Path(name or 'index.html').suffix)
        self.send_response(404 if content is None else 200)
        self.send_header(
            'Content-Type', media_type or 'application/octet-stream'
        )
        self.send_header('Content-Length', str(len(content or b'')))
        self.send_header('Cache-Control', 'no-cache')
        self.send_header('X-Content-Type-Options', 'nosniff')
        self.end_headers()
        return content or b''

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing per request."""


class AppServer(ThreadingHTTPServer):
    """Server of one web app.

    It listens at once, so that a used port is found before an export.

    Args:
        host (str, optional): IPv4 address. Defaults to None: that on the
            local network.
        port (int): Port. Defaults to 8443.
        on_refusal (Callable): Called once, if a browser refuses the
            certificate.

    Raises:
        ImportError: If a package is missing.
        OSError: If the port is in use, or the certificate cannot be stored.
        Error: If this computer is on no network.
    """

    daemon_threads = True

    def __init__(
        self,
        host: str | None = None,
        port: int = PORT,
        on_refusal: Callable[[], None] = lambda: None,
    ):
        require('cryptography', 'segno', extra=EXTRA)
        self.host = host or find_address()
        authority = Authority.open(self.host)
        self._certificate = authority.encode()
        self._context = authority.make_context(self.host)
        self._files: dict[str, Path] = {}
        self._on_refusal, self._was_refused = on_refusal, False
        try:
            super().__init__((self.host, port), _Handler)
        except OSError as error:
            reason = error.strerror or error
            if error.errno == errno.EADDRINUSE:
                reason = 'the port is in use'
            raise OSError(
                f'cannot serve the app at {self.host}, port {port}: {reason}; '
                'change `port` or `host`'
            ) from error

    @property
    def address(self) -> str:
        """Address of the app."""
        return f'https://{self.host}:{self.server_port}/'

    @property
    def certificate_address(self) -> str:
        """Address of the certificate authority, to install it."""
        return f'{self.address}{CERTIFICATE}'

    def read(self, name: str) -> bytes | None:
        """Return a file of the app, or None for any other."""
        if name == CERTIFICATE:
            return self._certificate
        path = self._files.get(name)
        return path.read_bytes() if path and path.is_file() else None

    @contextmanager
    def serving(self, folder: Path, files: Sequence[Path]) -> Iterator[None]:
        """Serve the files of an app within a context."""
        self._files = {x.relative_to(folder).as_posix(): x for x in files}
        thread = Thread(target=self.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.shutdown()
            thread.join()

    def finish_request(self, request, client_address) -> None:
        """Encrypt a connection in its own thread, and answer it."""
        request.settimeout(SECONDS)
        try:
            with self._context.wrap_socket(request, server_side=True) as tls:
                super().finish_request(tls, client_address)
        except ssl.SSLError as error:
            if _REFUSED.search(error.reason or '') and not self._was_refused:
                self._was_refused = True
                self._on_refusal()
        except OSError:  # the phone left
            pass


def draw_qr_lines(address: str) -> list[str]:
    """Return the lines of a QR code in characters, for a terminal."""
    import segno

    out = StringIO()
    segno.make(address, micro=False).terminal(out, border=2, compact=True)
    return out.getvalue().splitlines()


def make_qr_picture(address: str) -> str:
    """Return a QR code as the address of an image (data URI)."""
    import segno

    code = segno.make(address, micro=False)
    return code.svg_data_uri(scale=6, light='#fff', border=4)
