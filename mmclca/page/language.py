# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Language of the page: as the browser asks for it, or one for all visitors.

Gradio writes the texts of components in the browser, see :func:`label`.
Handlers write theirs in the language of the request, see :func:`translate`.
"""

import json
from collections.abc import Callable
from contextlib import closing
from inspect import isgeneratorfunction

import gradio as gr
from gradio.i18n import I18nData
from starlette.datastructures import Headers, MutableHeaders

from mmclca.datasets.decoding import FORMATS, MAX_PIXELS
from mmclca.languages import (
    ENGLISH,
    choose_form,
    list_languages,
    read_texts,
    text,
    use_language,
)

from .limits import MAX_FILES, MAX_MEGABYTES, MEGABYTES

LABELS = 'label.'  # prefix of the keys
HEADER = 'accept-language'
HEAD = b'<head>'  # of the page
# Gradio's name of a language, if it is not the code
LOCALES = {'zh': 'zh-CN'}
# values in texts of components
VALUES = dict(
    files=f'{MAX_FILES:,}',
    megabytes=MEGABYTES,
    total=f'{MAX_MEGABYTES:,}',
    pixels=f'{MAX_PIXELS / 1e6:.0f}',
    formats='JPEG, PNG, TIFF, WebP' + ', HEIC' * ('HEIF' in FORMATS),
)
# Gradio's texts of the drop area for folders
REPLACED = {
    'upload_text.drop_file': 'label.folder.drop',
    'upload_text.click_to_upload': 'label.folder.click',
}


def label(key: str) -> str:
    """Return a mark that Gradio replaces by a text in the browser."""
    return str(I18nData(key))


def list_translations() -> gr.I18n:
    """Return the texts of components in all languages."""
    tables = {}
    for code, labels in read_texts(LABELS).items():
        with use_language(code):
            limits = text('label.limits', **VALUES)
            table = {key: text(key, limits=limits, **VALUES) for key in labels}
        table |= {key: table[ours] for key, ours in REPLACED.items()}
        tables[LOCALES.get(code, code)] = table
    return gr.I18n(**tables)


def write_script(code: str) -> str:
    """Write a script that makes Gradio use a language.

    Gradio reads it from ``navigator.language``.
    """
    locale = LOCALES.get(code, code)
    with use_language(code):
        texts = dict(unreadable=choose_form('page.upload.unreadable'))
    return (
        f'<script>const mmclcaTexts = {json.dumps(texts)};'
        f"document.documentElement.lang = '{locale}';"
        f"Object.defineProperty(navigator, 'language', {{value: '{locale}'}})"
        '</script>'
    )


def find_language(header: str) -> str:
    """Return the first language of the page in a header."""
    codes = list_languages()
    for entry in header.split(','):
        code = entry.partition(';')[0].strip().lower().partition('-')[0]
        if code in codes:
            return code
    return ENGLISH


def translate(handler: Callable) -> Callable:
    """Make a handler write texts in the language of the request.

    Gradio adds the request to the values.
    """

    def call(request: gr.Request, *values):
        with use_language(find_language(request.headers.get(HEADER, ''))):
            return handler(*values)

    def iterate(request: gr.Request, *values):
        language = find_language(request.headers.get(HEADER, ''))
        with closing(handler(*values)) as steps:
            while True:
                # each step may run in another thread
                with use_language(language):
                    try:
                        step = next(steps)
                    except StopIteration:
                        return
                yield step

    return iterate if isgeneratorfunction(handler) else call


class PageLanguage:
    """ASGI middleware to write the page in the language of its request.

    With a language, all requests ask for it.
    """

    def __init__(self, app: Callable, language: str | None):
        self.app, self.language = app, language

    async def __call__(self, scope, receive, send) -> None:
        """Pass a request to the application, and add a script to the page."""
        if self.language and 'headers' in scope:
            MutableHeaders(scope=scope)[HEADER] = self.language
        if scope['type'] != 'http' or scope['path'] != '/':
            await self.app(scope, receive, send)
            return
        code = find_language(Headers(scope=scope).get(HEADER, ''))
        script, starts = write_script(code).encode(), []

        async def send_page(message) -> None:
            if message['type'] == 'http.response.start':
                starts.append(message)  # its length is not yet known
                return
            body = message.get('body', b'')
            message['body'] = body.replace(HEAD, HEAD + script, 1)
            for start in starts:
                headers = MutableHeaders(scope=start)
                headers.add_vary_header(HEADER)
                if body:
                    headers['content-length'] = str(len(message['body']))
                await send(start)
            starts.clear()
            await send(message)

        await self.app(scope, receive, send_page)
