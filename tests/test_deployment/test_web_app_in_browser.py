# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""An exported web app in a headless browser, served as from a web host."""

from base64 import b64encode
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
import pytest
from browser_pages import chromium, drive, playwright
from installed import NEEDS_COMPILER
from PIL import Image
from small_web_app import NEEDS_RUNTIME, read_list, write_small_app
from tiny_export import EXPORT
from tiny_photos import write_photos, write_weights
from tiny_run import run_tool

from mmclca import fit
from mmclca.datasets.decoding import decode

__all__ = ['chromium']
expect = playwright.expect
pytestmark = [pytest.mark.slow, NEEDS_COMPILER, NEEDS_RUNTIME]
OLD = 'WebAssembly.validate = () => false'
HTTP = "Object.defineProperty(self, 'isSecureContext', { value: false })"
PRIVATE = 'delete Navigator.prototype.serviceWorker'
LOSE = (
    'caches.keys().then(([x]) => caches.open(x)).then((x) => x.delete("%s"))'
)
PIXELS = """async (coded) => {
  const { openPhoto, pixelsOf } = await import('./photo.js');
  const photo = new Blob([Uint8Array.from(atob(coded), (x) =>
    x.charCodeAt(0))]);
  try {
    const { pixels, width, height } = pixelsOf(await openPhoto(photo));
    return [height, width, [...pixels]];
  } catch ({ message }) {
    return message;
  }
}"""


class AwkwardHost(drive.QuietHandler):
    """Host with redirects, few media types and varying answers."""

    extensions_map = dict.fromkeys(
        ('.html', '.js', '.css'), 'text/javascript'
    ) | {'.html': 'text/html', '.css': 'text/css', '': 'application/x-file'}

    def end_headers(self):
        self.send_header('Vary', 'Accept')
        self.send_header('Cache-Control', 'no-store')
        super().end_headers()

    def do_GET(self):  # noqa: N802
        if self.path != '/':
            return super().do_GET()
        self.send_response(302)
        self.send_header('Location', '/index.html')
        self.end_headers()


class ChangingHost(drive.QuietHandler):
    """Host with changed pages."""

    def copyfile(self, source, outputfile):
        outputfile.write(source.read().replace(b'<h1 ', b'<h1  '))


class StrictHost(drive.QuietHandler):
    """Host with a wrong media type of the runtime."""

    def guess_type(self, path):
        known = super().guess_type(path)
        return 'text/plain' if 'runtime' in str(path) else known


@pytest.fixture
def app(tmp_path):
    """Folder with an app and a photo, and the address of the app."""
    cv2.imwrite(str(tmp_path / 'a.png'), np.full((300, 500, 3), 99, 'u1'))
    with drive.served(write_small_app(tmp_path)) as address:
        yield tmp_path, address


@contextmanager
def opened(chromium, address, script='', **options):
    """Yield a page in a new context, and its requested addresses."""
    asked, phone = [], dict(width=360, height=740)
    with chromium.new_context(viewport=phone, **options) as context:
        context.add_init_script(script)
        context.on('request', lambda request: asked.append(request.url))
        page = context.new_page()
        page.goto(address)
        yield page, asked


def wait_until_stored(page):
    expect(page.locator('#files')).to_be_enabled()
    expect(page.locator('#offline')).to_have_text('This app works offline.')


def test_app_of_fitted_model_predicts_as_python_offline(chromium, tmp_path):
    photos, weights = write_photos(tmp_path), write_weights(tmp_path)
    model = fit(photos, tmp_path / 'model', weights=weights, probe_only=True)
    with pytest.MonkeyPatch.context() as patch:
        options = '--web', '--float', '--photos-in-app'
        run_tool(patch, EXPORT, tmp_path / 'model', *options)
    paths = sorted(photos.rglob('*.png'))[::3]
    paths.append(tmp_path / '=red.png')
    cv2.imwrite(str(paths[-1]), np.full((90, 50, 3), (0, 0, 255), 'u1'))
    with (
        drive.served(tmp_path / 'model/web') as address,
        opened(chromium, address) as (page, asked),
    ):
        wait_until_stored(page)
        assert all(url.startswith(address) for url in asked)
        page.context.set_offline(True)
        page.reload()
        wait_until_stored(page)
        asked.clear()
        drive.identify(page, *paths)
        assert all(url.startswith('blob:') for url in asked)
        rows = read_list(page, tmp_path)
        flagged = page.locator('article.unknown').count()
        assert page.locator('#classes img').count() == len(model.classes)
        facts = page.locator('#facts').inner_text()
    for row, found in zip(rows, model.predict(paths), strict=True):
        assert row['image'] == Path(found['image']).name
        assert row['pred_class'] == row['name_1'] == found['pred_class']
        assert row['known'] == ('yes' if found['known'] else 'no')
        result = found['pred_class'] if found['known'] else 'unknown'
        assert row['result'] == result
        for name in ('pred_score', 'known_score'):
            assert abs(float(row[name]) - found[name]) < 1e-3
    assert f'{100 * model.accuracy:.1f}% (95% interval' in facts
    assert flagged == sum(row['known'] == 'no' for row in rows) > 0


def test_app_is_used_on_a_phone_and_by_keyboard(app, chromium):
    folder, address = app
    with opened(chromium, address) as (page, _):
        drive.identify(page, folder / 'a.png')
        assert page.evaluate('document.documentElement.scrollWidth') == 360
        buttons = 'export', 'unmarked', 'clear'
        # the first summary has no name
        names = ('', 'number', 'camera', 'files', 'position')
        for name in (*names, *buttons):
            page.keyboard.press('Tab')
            assert page.evaluate('document.activeElement.id') == name
        page.on('dialog', lambda dialog: dialog.accept())
        page.keyboard.press('Enter')
        expect(page.locator('#count')).to_contain_text('0 in the list')


@pytest.mark.first
def test_new_export_replaces_the_app_after_a_click(app, chromium):
    folder, address = app
    with opened(chromium, address) as (page, _):
        wait_until_stored(page)
        drive.identify(page, folder / 'a.png')
        write_small_app(folder, seed=1)
        page.reload()
        page.get_by_role('button', name='Reload').click()
        expect(page.locator('#update')).to_be_hidden()
        wait_until_stored(page)
        page.context.set_offline(True)
        drive.identify(page, folder / 'a.png')
        before, after = read_list(page, folder)
        assert before['model'] != after['model']
        assert before['pred_score'] != after['pred_score']
        assert page.evaluate('caches.keys().then((x) => x.length)') == 1


def test_position_is_recorded_for_taken_photos(app, chromium):
    folder, address = app
    place = dict(latitude=-12.5, longitude=30.25, accuracy=8)
    with opened(chromium, address, geolocation=place) as (page, _):
        page.get_by_label('Save my position').check()
        expect(page.locator('#errors')).to_contain_text('position')
        page.context.grant_permissions(['geolocation'])
        drive.identify(page, folder / 'a.png', entry='#camera')
        drive.identify(page, folder / 'a.png')
        taken, chosen = read_list(page, folder)
    assert (taken['latitude'], taken['longitude']) == ('-12.5', '30.25')
    assert chosen['latitude'] == ''


def test_app_opens_offline_at_each_address_in_all_tabs(app, chromium):
    folder, _ = app
    with (
        drive.served(folder / 'web', AwkwardHost) as address,
        opened(chromium, f'{address}?from=link#here') as (page, _),
    ):
        wait_until_stored(page)
        assert page.evaluate(LOSE % 'photo.js')
        page.reload()
        wait_until_stored(page)
        context = page.context
        context.set_offline(True)
        names = '', 'index.html?a=1', 'other/place'
        tabs = [context.new_page() for _ in names]
        for tab, name in zip(tabs, names, strict=True):
            tab.goto(address + name)
            wait_until_stored(tab)
        for tab in tabs:
            tab.set_input_files('#files', [str(folder / 'a.png')] * 3)
        for tab in tabs:
            expect(tab.locator('#count')).to_contain_text('9 in the list')
        assert len(read_list(page, folder)) == 9
        tabs[0].on('dialog', lambda dialog: dialog.accept())
        tabs[0].get_by_role('button', name='Clear').click()
        expect(page.locator('#count')).to_contain_text('0 in the list')


def save(image, kind, orientation=None, **options):
    if orientation:
        options['exif'] = Image.Exif()
        options['exif'][274] = orientation
    image.save(content := BytesIO(), kind, **options)
    return content.getvalue()


def photos():
    """Return images of the accepted formats, and others, by name."""
    random = np.random.default_rng(0)
    rgb = Image.fromarray(random.integers(0, 256, (9, 14, 3), 'u1'))
    rgba, gray = rgb.copy(), rgb.convert('L')
    rgba.putalpha(gray)
    found = {
        'gray.jpg': save(gray, 'JPEG', 6),
        'gray and alpha.png': save(rgba.convert('LA'), 'PNG', 5),
        'palette.gif': save(rgb, 'GIF'),
        'palette.png': save(rgba.quantize(16), 'PNG'),
        'rgb.bmp': save(rgb, 'BMP'),
        'rgb.tif': save(rgb, 'TIFF'),
        'vector.svg': b'<svg xmlns="http://www.w3.org/2000/svg"/>',
    }
    for i in range(1, 9):
        found[f'{i} lossy.webp'] = save(rgb, 'WEBP', i)
        found[f'{i} alpha.webp'] = save(rgba, 'WEBP', i, lossless=True)
    short = random.integers(0, 2**16, (9, 14, 3), 'u2')
    for bits in (12, 16):
        encoded = cv2.imencode('.png', short >> (16 - bits))[1]
        found[f'{bits} bits.png'] = encoded.tobytes()
    # 16 bits per pixel, which decoders spread to 24 in their own ways
    bmp = bytearray(save(rgb, 'BMP'))
    bmp[28] = 16
    return found | {'555.bmp': bytes(bmp)}


def test_photos_have_the_pixels_of_python_or_are_refused(app, chromium):
    refused = set()
    with opened(chromium, app[1]) as (page, _):
        for name, content in photos().items():
            found = page.evaluate(PIXELS, b64encode(content).decode())
            if isinstance(found, str):
                refused.add(name)
                continue
            height, width, pixels = found
            pixels = np.reshape(pixels, (height, width, 3))
            np.testing.assert_array_equal(
                pixels, decode(content)[..., ::-1], name
            )
    assert refused == {'rgb.tif', 'vector.svg', '12 bits.png', '555.bmp'}


def test_bad_photos_are_named(app, chromium):
    folder, address = app
    cv2.imwrite(str(folder / 'large.jpg'), np.zeros((10_000, 10_000), 'u1'))
    (folder / 'cut.png').write_bytes((folder / 'a.png').read_bytes()[:99])
    (folder / 'text.jpg').write_text('text')
    names = 'large.jpg', 'cut.png', 'text.jpg', 'a.png'
    with opened(chromium, address) as (page, _):
        drive.identify(page, *(folder / name for name in names))
        large, *others = page.locator('#errors li').all_inner_texts()
        assert large.startswith('large.jpg: 100 megapixels')
        assert [x.partition(' photo')[0] for x in others] == [
            'cut.png: not a',
            'text.jpg: not a',
        ]
        assert len(read_list(page, folder)) == 1


@pytest.mark.parametrize(
    'script, place, said',
    [
        (OLD, '#errors', 'WebAssembly SIMD'),
        (HTTP, '#offline', 'https'),
        (PRIVATE, '#offline', 'private'),
        ('', '#errors', 'model.onnx'),
    ],
)
def test_broken_app_is_named(script, place, said, app, chromium):
    folder, address = app
    if not script:
        (folder / 'web/model.onnx').write_bytes(b'damaged')
    with opened(chromium, address, script) as (page, _):
        expect(page.locator(place)).to_contain_text(said)


@pytest.mark.parametrize(
    'host, place, said',
    [
        (ChangingHost, '#offline', 'index.html'),
        (StrictHost, '#errors', 'text/plain'),
    ],
)
def test_unsuitable_host_is_named(host, place, said, app, chromium):
    folder, _ = app
    with (
        drive.served(folder / 'web', host) as address,
        opened(chromium, address) as (page, _),
    ):
        expect(page.locator(place)).to_contain_text(said)
        expect(page.locator('#offline')).not_to_contain_text('works offline')
