# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Bring the web app to a phone: over https, or as one file."""

import pytest
from browser_pages import chromium, drive, playwright
from small_web_app import NEEDS_RUNTIME, write_colors, write_small_app

from mmclca.deployment import ModelTitle, local_certificate, web_app
from mmclca.deployment.app_server import AppServer
from mmclca.deployment.web_single_file import join_files

pytest.importorskip('cryptography')
pytest.importorskip('segno')
__all__ = ['chromium']
expect = playwright.expect
pytestmark = [pytest.mark.slow, NEEDS_RUNTIME]


@pytest.fixture
def photo(tmp_path):
    return write_colors(tmp_path, [99])[0]


def test_served_app_has_a_position_and_names_its_certificate(
    chromium, photo, tmp_path, monkeypatch
):
    monkeypatch.setattr(local_certificate, 'FOLDER', tmp_path / 'certificate')
    folder, refusals = write_small_app(tmp_path), []
    files = [path for path in folder.rglob('*') if path.is_file()]
    server = AppServer('127.0.0.1', 0, lambda: refusals.append(1))
    place = dict(latitude=1.5, longitude=2.5)
    with (
        server,
        server.serving(folder, files),
        chromium.new_context(
            ignore_https_errors=True,  # as after Proceed
            geolocation=place,
            permissions=['geolocation'],
        ) as context,
    ):
        page = context.new_page()
        page.goto(server.address)
        page.get_by_label('Save my position').check()
        drive.identify(page, photo, entry='#camera')
        assert page.evaluate('isSecureContext')
        offline = page.locator('#offline')
        expect(offline).to_contain_text(server.certificate_address)
        link = page.get_by_role('link', name='Install the certificate')
        with page.expect_download() as download:
            link.click()
        content = download.value.path().read_text()
        assert content.startswith('-----BEGIN CERTIFICATE')
        strict = chromium.new_page()
        with pytest.raises(playwright.Error, match='ERR_CERT'):
            strict.goto(server.address)
        strict.close()
    assert refusals == [1]


def test_single_file_identifies_and_keeps_photos(chromium, photo, tmp_path):
    write_small_app(tmp_path)
    title = ModelTitle('One & only')
    files = web_app.build_files(tmp_path / 'model.onnx', title, [])
    file = tmp_path / 'web.html'
    file.write_bytes(join_files(files))
    for path in (tmp_path / 'web').rglob('*.*'):
        path.unlink()
    asked = []
    with chromium.new_context() as context:
        page = context.new_page()
        page.on('request', lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        expect(page.locator('#files')).to_be_enabled()
        expect(page.locator('#offline')).to_contain_text('works offline')
        drive.identify(page, photo)
        name = page.locator('h3').inner_text()
        page.reload()
        expect(page.locator('h3')).to_have_text(name)
        assert page.title() == 'One & only'
    starts = file.as_uri(), 'blob:', 'data:'
    assert asked and all(url.startswith(starts) for url in asked)


def test_single_file_says_why_it_does_not_start(chromium, tmp_path):
    write_small_app(tmp_path)
    title = ModelTitle('small')
    files = web_app.build_files(tmp_path / 'model.onnx', title, [])
    file = tmp_path / 'web.html'
    page = chromium.new_page()
    file.write_bytes(join_files(files))
    page.add_init_script('delete globalThis.DecompressionStream')
    page.goto(file.as_uri())
    expect(page.locator('#errors')).to_contain_text('DecompressionStream')
    page.close()
