# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The form of the command ``page`` in a browser, up to a fitted model."""

import re
import shutil
import signal
import subprocess
import sys

import psutil
import pytest
import torch
from browser_pages import chromium as chromium_fixture
from browser_pages import drive, drop_folder, playwright, watched
from form_models import draw_leaves
from tiny_photos import write_weights
from tiny_run import environment

from mmclca.fitting import FittedModel

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

chromium = chromium_fixture
pytestmark = pytest.mark.slow
expect = playwright.expect
FIT = 600_000  # ms, on a busy computer
READ = "import('./store.js').then(({ readRows }) => readRows())"
PAGE = [sys.executable, '-m', 'mmclca', 'page', '--weights=tiny.safetensors']


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """Folder with weights, and with ``leaves`` of three cultivars."""
    folder = tmp_path_factory.mktemp('form')
    torch.manual_seed(0)
    write_weights(folder)
    draw_leaves([folder / f'leaves/cultivar {i}' for i in range(3)], 4)
    return folder


@pytest.fixture
def serve(place):
    """Start the command; return its process and the address."""
    started = []

    def serve():
        options = dict(cwd=place, stdout=subprocess.PIPE, text=True)
        started.append(subprocess.Popen(PAGE, env=environment(), **options))
        address = re.search(r'http\S+/', started[-1].stdout.readline())[0]
        return started[-1], address

    yield serve
    for process in started:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def begin(page):
    """Press Train, and wait for the progress bar."""
    page.locator('#fit').click()
    expect(page.locator('#state progress')).to_be_visible()


def add_folder(chromium, address, place):
    """Upload the leaves in two tabs; fit in one, which the other finds."""
    with watched(chromium) as (page, _), watched(chromium) as (other, _):
        for tab in (page, other):
            tab.goto(address)
            expect(tab.locator('#folder')).to_contain_text('Drop')
        page.set_input_files('#folder input', place / 'leaves')
        found = page.locator('#found textarea')
        expect(found).to_have_value(
            re.compile('12 photos.*cultivar 2: 4', re.S)
        )
        drop_folder(other, place / 'leaves')
        expect(other.locator('#fit')).to_be_visible()
        begin(page)
        other.locator('#fit').click()
        expect(other.get_by_text('leaves is still training')).to_be_visible()
        # a reload before the end of the answer is an error in the console
        expect(other.locator('#state progress')).to_be_visible()
        other.reload()
        other.get_by_role('button', name='Details').click()
        expect(other.locator('#log textarea')).to_have_value(
            re.compile('Data +12 photos'), timeout=FIT
        )


def test_page_fits_a_model_even_if_killed_and_names_a_leaf(
    chromium, serve, place
):
    killed, address = serve()
    add_folder(chromium, address, place)
    (fit,) = psutil.Process(killed.pid).children()
    killed.kill()
    fit.wait(30)
    with watched(chromium, viewport=dict(width=360, height=900)) as (page, _):
        page.goto(serve()[1])
        expect(page.locator('#folder')).to_contain_text('Drop')
        page.locator('#name input').click()
        page.get_by_role('option', name='leaves').click()
        begin(page)
        page.reload()
        page.locator('#use').click(timeout=FIT)  # before the latency
        expect(page.locator('#state')).to_contain_text('Stopping')
        expect(page.locator('#try')).to_be_visible(timeout=FIT)
        report = page.frame_locator('#report iframe')
        report.locator('a[href*="#"]').first.click()
        expect(report.locator('body')).to_contain_text('get the right name')
        expect(page.locator('#result')).to_contain_text('get the right name')
        page.locator('#pack').click()
        with page.expect_download() as download:
            page.locator('#packed a[download="leaves model.zip"]').click()
        shutil.unpack_archive(download.value.path(), place / 'copy', 'zip')
        assert (place / 'copy/model.pth').is_file()
        assert not (place / 'copy/features').exists()
        with page.expect_download(timeout=FIT) as download:
            app = '#packed a[download="leaves phone app.zip"]'
            page.locator(app).click(timeout=FIT)
        expect(page.locator('#app')).to_contain_text(
            re.compile('https.*(Accuracy|Agreement)', re.S)
        )
        texts = page.locator('body').inner_text()
        texts += report.locator('body').inner_text()
        assert '--' not in texts and '-m mmclca' not in texts
        shutil.unpack_archive(download.value.path(), place / 'web', 'zip')
        page.locator('#try').click()
        drive.drop(page, place / 'leaves/cultivar 1/00.png')
        expect(page.locator('#classes h2')).to_have_text('cultivar 1')
        about = page.locator('#model textarea')
        expect(about).to_have_value(re.compile('leaves, .*right name', re.S))
        assert page.evaluate('document.body.scrollWidth') <= 360
    check_web_app(chromium, place)


def check_web_app(chromium, place):
    """Identify a leaf offline in the downloaded app, as Python does."""
    leaf = place / 'leaves/cultivar 2/00.png'
    (found,) = FittedModel(place / 'copy').predict([leaf])
    with (
        drive.served(place / 'web') as address,
        chromium.new_context() as context,
    ):
        page = context.new_page()
        page.goto(address)
        expect(page.locator('#name')).to_have_text('leaves')
        expect(page.locator('#offline')).to_contain_text('works offline')
        context.set_offline(True)
        page.reload()
        drive.identify(page, leaf)
        (row,) = page.evaluate(READ)
    assert row['pred_class'] == found['pred_class']
    assert abs(row['pred_score'] - found['pred_score']) < 0.05  # 8 bits


def test_cancelled_fit_leaves_the_page_ready(chromium, serve, place):
    archive = shutil.make_archive(place / 'zipped', 'zip', place, 'leaves')
    _, address = serve()
    with watched(chromium) as (page, _):
        page.goto(address)
        with page.expect_file_chooser() as chooser:
            page.locator('#zip').click()
        chooser.value.set_files(archive)
        begin(page)
        page.locator('#cancel').click()
        expect(page.locator('#state')).to_contain_text('resumed')
        expect(page.locator('#name input')).to_have_value('zipped')
        expect(page.locator('#fit')).to_be_visible()


def test_fit_stopped_during_fine_tuning_keeps_the_first_model(
    chromium, serve, place
):
    draw_leaves([place / f'many/c{i}' for i in range(3)], 70)
    _, address = serve()
    with watched(chromium) as (page, _):
        page.goto(address)
        expect(page.locator('#folder')).to_contain_text('Drop')
        page.set_input_files('#folder input', place / 'many')
        begin(page)
        state = page.locator('#state')
        tuning = re.compile('Step 3 of 4: Fine-tuning.* left', re.S)
        expect(state).to_contain_text(tuning, timeout=FIT)
        page.locator('#use').click()
        expect(state).to_contain_text('Stopping', timeout=5000)
        expect(page.locator('#try')).to_be_visible(timeout=FIT)
        expect(page.locator('#result')).to_contain_text('get the right name')
        expect(page.locator('#fit')).to_have_text('Resume training')
        page.locator('#try').click()
        drive.drop(page, place / 'many/c1/00.png')
        drive.wait_for_scores(page)
