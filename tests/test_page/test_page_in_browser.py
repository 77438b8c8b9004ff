# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The page in a browser."""

import json
import re
import socket
import urllib.request
from base64 import b64encode
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread
from urllib.parse import urlparse

import pytest
import torch
from browser_pages import chromium as chromium_fixture
from browser_pages import drive, playwright, watched
from PIL import Image
from tiny_model import write_tiny
from tiny_run import CLASSES, ROOT

from mmclca.page import open_model
from mmclca.page.photos import draw_examples

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

from mmclca.page.identify import IdentifyTab
from mmclca.page.server import serve, uploads_folder

chromium = chromium_fixture
pytestmark = [pytest.mark.slow, pytest.mark.first]
expect = playwright.expect
HERE = ('127.0.0.1', 'localhost', '::1')
ABOUT = 'tiny.pth, 4 classes: ash, beech, elm, oak'


@pytest.fixture(scope='module')
def leaf(tmp_path_factory):
    """Path of a synthetic leaf."""
    return draw_examples(tmp_path_factory.mktemp('leaf'), 1)[0]


@pytest.fixture(scope='module')
def asked_for():
    """Hosts connected to while the page is served, with a dead proxy."""
    hosts, connect = [], socket.socket.connect

    def note(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            hosts.append(address[0])
        return connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, 'connect', note)
        patch.setenv('http_proxy', 'http://127.0.0.1:9')  # dead
        # urllib caches the proxies
        patch.setattr(urllib.request, '_opener', None)
        yield hosts


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    """EViT with two stages."""
    folder = tmp_path_factory.mktemp('tiny')
    torch.manual_seed(0)
    evit = dict(type='mmclca.EViT', keep_rate=0.5)
    write_tiny(folder, reducer=evit, reduce_at=(0, 1))
    return open_model(folder / 'tiny.pth')


@pytest.fixture(scope='module')
def uploads(asked_for):
    """Folder of uploads; Gradio uses no proxy for the page."""
    with uploads_folder() as folder:
        yield folder


@pytest.fixture(scope='module')
def address(model, asked_for, uploads):
    """Address of its page, with example leaves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('mmclca.page.server.MEGABYTES', 1)
        patch.setattr('mmclca.page.photos.CULTIVARS', CLASSES)
        with serve(IdentifyTab(uploads, model)) as (address, _):
            yield address


@pytest.fixture
def page(chromium, address):
    """The page; its browser may only connect to this computer."""
    with watched(chromium) as (page, asked):
        drive.open_page(page, address)
        yield page
    places = {urlparse(url).hostname for url in asked if url[:4] == 'http'}
    assert places == {'127.0.0.1'}


def expect_tokens(page, *numbers):
    """Wait for the tokens in the captions of the stages."""
    stages = (f'{i}: {number} tokens' for i, number in enumerate(numbers, 1))
    captions = re.compile('.*'.join(stages), re.DOTALL)
    expect(page.locator('#survivors')).to_contain_text(captions)


def test_page_names_a_photo_then_shows_patches_and_cost(page, leaf, tmp_path):
    expect(page.locator('#model textarea')).to_have_value(ABOUT)
    drive.drop(page, leaf)
    drive.wait_for_scores(page)
    for name in CLASSES:
        expect(page.locator('#classes')).to_contain_text(name)
    expect(page.locator('#costs')).not_to_be_visible()
    drive.write_picture(page, tmp_path / 'page.png')
    with Image.open(tmp_path / 'page.png') as image:
        assert image.width == 1280
        assert image.height > 700
        assert len(image.getcolors()) > 50
    drive.explore(page)
    drive.wait_for_costs(page, 'EViT, keep rate 0.5')
    expect_tokens(page, 11, 7)
    expect(page.locator('#survivors img')).to_have_count(3)
    expect(page.locator('#legend')).to_contain_text('as photographed')


def test_page_names_a_photo_if_it_is_dropped_while_the_page_loads(
    chromium, address, leaf
):
    held = []
    with watched(chromium) as (page, _):
        page.route('**/gradio_api/run/*', lambda x: held.append(x))
        drive.open_page(page, address)
        drive.drop(page, leaf)
        drive.wait_for_scores(page)
        for request in held:
            request.continue_()
        expect(page.locator('#model textarea')).to_have_value(ABOUT)
        drive.wait_for_scores(page)
        expect(page.get_by_label('Remove Image')).to_be_visible()
    assert held


def test_explore_tab_shows_no_error_without_a_photo(page):
    calls = count(1)
    is_second = lambda x: 'queue/join' in x.url and next(calls) == 2  # noqa: E731
    with page.expect_request(is_second):  # after the answer to the first
        page.get_by_role('tab', name='explore').click()
    expect(page.locator('#method')).to_be_visible()
    expect(page.get_by_text('Error', exact=True)).to_have_count(0)


def test_page_updates_if_keep_rate_or_method_changes(page, leaf):
    drive.drop(page, leaf)
    drive.explore(page)
    drive.wait_for_costs(page, 'EViT, keep rate 0.5')
    slider = page.locator('#keep_rate input[type=range]')
    slider.focus()
    slider.press('End')
    drive.wait_for_costs(page, 'EViT, keep rate 1')
    expect_tokens(page, 18, 18)
    page.locator('#method input').click()
    page.get_by_role('option', name='TopK').click()
    drive.wait_for_costs(page, 'TopK, keep rate 1')
    number = page.locator('#keep_rate input[type=number]')
    number.fill('0.25')
    number.press('Enter')
    drive.wait_for_costs(page, 'TopK, keep rate 0.25')
    expect_tokens(page, 6, 3)
    expect(page.locator('#legend')).to_contain_text('dropped')


def test_page_refuses_a_text_file_and_reads_the_next_photo(
    page, leaf, tmp_path
):
    (tmp_path / 'leaf.png').write_text('not a picture')
    drive.drop(page, str(tmp_path / 'leaf.png'))
    expect(page.get_by_text('cannot be read')).to_be_visible()
    expect(page.locator('#leaf')).to_contain_text('Drop a photo')
    drive.drop(page, leaf)
    drive.wait_for_scores(page)


def test_page_refuses_a_large_file_before_upload(page, tmp_path):
    path = tmp_path / 'leaf.png'
    path.write_bytes(bytes(2 * 2**20))
    drive.drop(page, str(path))
    message = page.get_by_text(re.compile('maximum allowed size'))
    expect(message).to_contain_text('1.0 Mb')


def test_example_leaf_is_classified_and_removed(page):
    drawn = page.locator('#drawn button')
    expect(drawn).to_have_count(8)
    drawn.nth(2).click()
    drive.wait_for_scores(page)
    page.get_by_label('Remove Image').click()
    expect(page.locator('#classes')).not_to_contain_text('%')


def test_page_has_no_endpoints_and_connects_to_no_other_host(
    address, asked_for, model, uploads
):
    with urllib.request.urlopen(f'{address}gradio_api/info') as answer:
        info = json.load(answer)
    assert info['named_endpoints'] == info['unnamed_endpoints'] == {}
    assert {*asked_for} and {*asked_for} <= {*HERE}
    port = urlparse(address).port
    with (
        pytest.raises(OSError, match=f'port {port}: .* `port`'),
        serve(IdentifyTab(uploads, model), port),
    ):
        pass


class Proxy(BaseHTTPRequestHandler):
    """Web server that forwards /leaf/PATH to PATH of the page."""

    def do_GET(self):
        size = int(self.headers.get('Content-Length') or 0)
        path = self.path.removeprefix('/leaf')
        page = HTTPConnection(self.server.page)
        given = path, self.rfile.read(size), dict(self.headers)
        page.request(self.command, *given)
        answer = page.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name != 'transfer-encoding':
                self.send_header(name, value)
        self.end_headers()
        while part := answer.read1(2**16):
            self.wfile.write(part)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_):
        pass


def test_page_works_below_a_path_with_login(
    chromium, model, uploads, leaf, monkeypatch
):
    monkeypatch.setenv('GRADIO_ROOT_PATH', '/leaf')
    tab = IdentifyTab(uploads, model)
    proxy = ThreadingHTTPServer((HERE[0], 0), Proxy)
    Thread(target=proxy.serve_forever, daemon=True).start()
    with (
        serve(tab, auth=('ann', 'secret')) as (address, _),
        watched(chromium) as (page, asked),
    ):
        proxy.page = urlparse(address).netloc
        page.goto(f'http://{HERE[0]}:{proxy.server_port}/leaf/')
        page.get_by_label('username').fill('ann')
        page.get_by_label('password').fill('secret')
        page.get_by_role('button', name='Login').click()
        drive.drop(page, leaf)
        drive.wait_for_scores(page)
    proxy.shutdown()
    paths = [urlparse(url).path for url in asked if url[:4] == 'http']
    assert all(path.startswith('/leaf/') for path in paths)


CHOOSE = """(content) => {
  const bytes = Uint8Array.from(atob(content), (x) => x.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], 'leaf.heic'));
  const input = document.querySelector('#leaf input[type=file]');
  input.files = data.files;
  input.dispatchEvent(new Event('change', { bubbles: true }));
}"""


def test_photo_is_identified_if_the_browser_knows_no_type(address, chromium):
    pytest.importorskip('pi_heif', reason='reads HEIC photos: extra heif')
    with watched(chromium) as (page, _):
        drive.open_page(page, address)
        content = (ROOT / 'tests/data/leaf.heic').read_bytes()
        page.evaluate(CHOOSE, b64encode(content).decode())
        drive.wait_for_scores(page)
