# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The page in other languages than English."""

import asyncio
import re
from types import SimpleNamespace

import pytest
import torch
from browser_pages import chromium as chromium_fixture
from browser_pages import drive, playwright, watched
from tiny_photos import write_photos, write_weights

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

import gradio as gr
from starlette.datastructures import Headers

from mmclca.languages import ENGLISH, list_languages, text, use_language
from mmclca.page import language
from mmclca.page.form import FitForm
from mmclca.page.identify import IdentifyTab
from mmclca.page.job import Job
from mmclca.page.language import HEADER, PageLanguage
from mmclca.page.photos import draw_examples
from mmclca.page.server import serve, uploads_folder

chromium = chromium_fixture
expect = playwright.expect
CHINESE = 'zh-CN'
FIT = 240_000  # ms
ENGLISH_WORDS = re.compile(r'(?:[A-Za-z]{2,} ){2,}[a-z]{2,}')


@pytest.mark.parametrize(
    'header, code',
    [
        ('zh-CN,zh;q=0.9,en;q=0.8', 'zh'),
        ('ZH-hant', 'zh'),
        ('fr-FR, en-US;q=0.5, zh;q=0.3', 'en'),
        ('fr', ENGLISH),
        ('', ENGLISH),
        ('*;q=0.5', ENGLISH),
        (';,-zh,=', ENGLISH),
    ],
)
def test_find_language_takes_the_first_of_the_page(header, code):
    assert language.find_language(header) == code


def ask(header):
    """Request of a visitor."""
    headers = Headers({HEADER: header})
    return SimpleNamespace(headers=headers)


def test_handlers_write_in_the_language_of_each_visitor():
    def steps(key):
        yield text(key)
        yield text(key)

    key = 'page.state.done'
    plain = language.translate(text)
    assert plain(ask('zh'), key) != plain(ask('en'), key) == 'Done.'
    pair = [language.translate(steps)(ask(x), key) for x in ('zh', 'en')]
    for chinese, english in zip(*pair, strict=True):
        assert chinese == plain(ask('zh'), key) and english == 'Done.'


def test_translated_generator_is_closed_with_its_handler():
    closed = []

    def steps():
        try:
            yield 1
        finally:
            closed.append(True)

    running = language.translate(steps)(ask('zh'))
    assert next(running) == 1
    running.close()
    assert closed == [True]


def test_gradio_passes_the_request_to_bound_handlers():
    handler = language.translate(text)
    inputs, *_ = gr.helpers.special_args(handler, ['key'], request=ask('zh'))
    assert [*map(type, inputs)] == [SimpleNamespace, str]


def test_state_of_a_job_is_worded_for_each_visitor(monkeypatch):
    job = Job()
    monkeypatch.setattr(Job, 'is_running', True)
    monkeypatch.setattr(job, '_process', SimpleNamespace())
    shown = [job.describe()]
    with use_language('zh'):
        shown.append(job.describe())
    job._waiting = 'page.state.stopping'
    with use_language('zh'):
        shown.append(job.describe())
    first, chinese, stopping = shown
    assert 'Step 1 of 4' in first and '第 1 步' in chinese
    assert '停止' in stopping


def test_translations_have_no_placeholders_left():
    tables = language.list_translations().translations_dict
    assert {*tables} == {language.LOCALES.get(x, x) for x in list_languages()}
    for table in tables.values():
        assert '{' not in ''.join(table.values())
        assert '10,000' in table['label.train.introduction']


def send_page(language, header):
    """Return the page sent to a visitor, and its asked language."""
    asked, sent = [], []

    async def app(scope, receive, send):
        asked.append(Headers(scope=scope)[HEADER])
        length = [(b'content-length', b'13')]
        await send(dict(type='http.response.start', headers=length))
        await send(dict(type='http.response.body', body=b'<head></head>'))

    async def send(message):
        sent.append(message)

    headers = [(b'accept-language', header.encode())]
    scope = dict(type='http', path='/', headers=headers)
    asyncio.run(PageLanguage(app, language)(scope, None, send))
    start, body = sent
    length = Headers(scope=start)['content-length']
    assert int(length) == len(body['body'])
    return body['body'].decode(), *asked


def test_page_names_its_language_for_gradio():
    page, asked = send_page(None, 'zh-HK,en')
    assert page.startswith('<head><script>') and "'zh-CN'" in page
    assert asked == 'zh-HK,en'
    assert "'en'" in send_page(None, 'fr')[0]


def test_chosen_language_holds_for_all_visitors():
    page, asked = send_page('zh', 'en')
    assert "'zh-CN'" in page and asked == 'zh'


def read_leftovers(page):
    """Return English texts of the tables, and English phrases on a page."""
    shown = page.locator('body').inner_text()
    english = language.list_translations().translations_dict[ENGLISH]
    lines = {line.strip() for line in shown.splitlines()}
    return [*lines & {*english.values()}, *ENGLISH_WORDS.findall(shown)]


@pytest.fixture(scope='module')
def address(tmp_path_factory):
    """Address of a page with a form, and folder of its models."""
    folder = tmp_path_factory.mktemp('models')
    torch.manual_seed(0)
    write_weights(folder)
    settings = dict(weights=str(folder / 'tiny.safetensors'))
    with uploads_folder() as uploads:
        tab = IdentifyTab(uploads)
        form = FitForm(tab, folder, settings)
        with serve(tab, form=form) as (address, _):
            yield address


@pytest.mark.slow
@pytest.mark.parametrize('locale', ['zh-CN', 'zh-HK'])
def test_page_is_in_the_language_of_the_browser(
    chromium, address, tmp_path, locale
):
    photos = write_photos(tmp_path, per_class=2)
    leaf = draw_examples(tmp_path, 1)[0]
    with watched(chromium, locale=locale) as (page, _):
        page.goto(address)
        expect(page.locator('#folder')).to_contain_text('文件夹')
        assert page.evaluate('document.documentElement.lang') == CHINESE
        page.set_input_files('#folder input', photos)
        found = page.locator('#found textarea')
        expect(found).to_have_value(re.compile('8 张照片，4 个类别'))
        expect(page.locator('#fit')).to_have_text('开始训练')
        page.locator('#groups input').click()
        page.get_by_role('option').nth(1).click()
        assert not read_leftovers(page)
        page.get_by_role('tab', name='识别').click()
        drive.drop(page, leaf)  # there is no model
        expect(page.get_by_text('还没有模型')).to_be_visible()
        assert not read_leftovers(page)


@pytest.mark.slow
def test_training_is_in_the_language_of_each_visitor(
    chromium, address, tmp_path
):
    photos = write_photos(tmp_path, per_class=3).rename(tmp_path / 'trees')
    with (
        watched(chromium, locale='zh-CN') as (page, _),
        watched(chromium, locale='en-US') as (other, _),
    ):
        page.goto(address)
        expect(page.locator('#folder')).to_contain_text('文件夹')
        page.set_input_files('#folder input', photos)
        page.locator('#fit').click()
        expect(page.locator('#state progress')).to_be_visible()
        other.goto(address)
        expect(other.locator('#state')).to_contain_text('of 4')
        expect(page.locator('#try')).to_be_visible(timeout=FIT)
        expect(page.locator('#result')).to_contain_text('得到正确名称')
        report = page.frame_locator('#report iframe')
        expect(report.locator('html')).to_have_attribute('lang', 'zh')
        page.locator('#growth button').first.click()
        assert not read_leftovers(page)
        other.reload()
        expect(other.locator('#result')).to_contain_text('the right name')


@pytest.mark.slow
def test_page_is_in_english_for_browsers_in_other_languages(chromium, address):
    with watched(chromium, locale='fr-FR') as (page, _):
        page.goto(address)
        expect(page.locator('#folder')).to_contain_text('Drop the folder')
        assert page.evaluate('document.documentElement.lang') == 'en'


@pytest.mark.slow
def test_page_is_in_the_chosen_language_for_all_browsers(chromium):
    with (
        uploads_folder() as uploads,
        serve(IdentifyTab(uploads), language='zh') as (address, _),
        watched(chromium, locale='en-US') as (page, _),
    ):
        page.goto(address)
        expect(page.locator('#leaf')).to_contain_text('将照片拖到这里')
        assert not read_leftovers(page)
        drive.drop(page, draw_examples(uploads, 1)[0])
        expect(page.get_by_text('还没有模型')).to_be_visible()
