# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Web app as one HTML file, to send and to open without a web host."""

import gzip
import json
import re
import struct
from base64 import b64encode
from collections.abc import Mapping
from html import escape

from mmclca.languages import choose_form

# all scripts are in the page
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' blob: 'wasm-unsafe-eval'; "
    "worker-src blob:; connect-src blob: data:; style-src 'unsafe-inline'; "
    "img-src blob: data:; base-uri 'none'; form-action 'none'"
)
START = 'single.js'
_POLICY = re.compile(
    r'(<meta http-equiv="Content-Security-Policy" content=")[^"]*'
)
_LINK = re.compile(r'<link [^>]*>\n')
_LOADING = re.compile(r'(<p id="facts") data-text="app.loading">[^<]*')
_SCRIPT = re.compile(r'<script type="module" src="[^"]*"></script>')
_IMPORT = re.compile(r"(import|from) '\./([^']+)'")
_RUNTIME = 'import(`./${RUNTIME}`)'


def join_files(files: Mapping[str, bytes]) -> bytes:
    """Join the files of a web app into one page.

    The files are compressed, and the browser unpacks them.

    Args:
        files (Mapping[str, bytes]): Files by name.
    """
    page = files['index.html'].decode()
    style, start = files['style.css'].decode(), files[START].decode()
    page = _POLICY.sub(lambda match: match[1] + POLICY, page)
    page = _LINK.sub('', page)
    unpacking = escape(choose_form('app.unpacking'), quote=False)
    page = _LOADING.sub(lambda match: f'{match[1]}>{unpacking}', page)
    page = _SCRIPT.sub(lambda _: f'<style>\n{style}</style>', page)
    packed = b64encode(_pack(files)).decode()
    end = (
        f'<script id="packed" type="application/gzip">{packed}</script>\n'
        f'<script>\n{start}</script>\n</body>'
    )
    return page.replace('</body>', end).encode()


def _pack(files: Mapping[str, bytes]) -> bytes:
    """Compress the files that scripts read, after a list of their sizes."""
    contents = {
        name: _name_modules(content) if name.endswith('.js') else content
        for name, content in files.items()
        if name.endswith(('.js', '.json', '.onnx', '.wasm'))
        and name not in ('sw.js', START)
    }
    sizes = [[name, len(content)] for name, content in contents.items()]
    listing = json.dumps(sizes).encode()
    joined = b''.join(
        [struct.pack('<I', len(listing)), listing, *contents.values()]
    )
    return gzip.compress(joined, mtime=0)


def _name_modules(script: bytes) -> bytes:
    """Import modules by name: a script in a page has no folder."""
    renamed = _IMPORT.sub(r"\1 '\2'", script.decode())
    return renamed.replace(_RUNTIME, 'import(RUNTIME)').encode()
