# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Survey of an uploaded folder: photos to label, and the result."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
import report_folder
import torch
from browser_pages import chromium as chromium_fixture
from browser_pages import drop_folder, playwright, watched
from tiny_model import write_tiny
from tiny_photos import write_photos
from tiny_run import CLASSES

from mmclca.fitting.record import FitRecord
from mmclca.survey.text import NONE

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

import gradio as gr

from mmclca.page import handlers, open_model
from mmclca.page.identify import IdentifyTab
from mmclca.page.server import serve, uploads_folder
from mmclca.page.survey import SurveyTab
from mmclca.page.survey_layout import build_survey

chromium = chromium_fixture
expect = playwright.expect


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    """Small model with a record of its classes, but no training photos."""
    folder = tmp_path_factory.mktemp('model')
    torch.manual_seed(0)
    write_tiny(folder)
    facts = report_folder.facts() | dict(call=dict(photos=None))
    record = FitRecord.from_json(facts)
    record = replace(record, photos=replace(record.photos, classes=CLASSES))
    files = SimpleNamespace(
        read_complete=lambda: record, read_used_photos=list
    )
    return replace(open_model(folder / 'tiny.pth'), files=files)


@pytest.fixture
def uploads(tmp_path):
    (tmp_path / 'uploads').mkdir()
    return tmp_path / 'uploads'


@pytest.fixture
def problems(monkeypatch):
    """Warnings on the page."""
    shown = []
    warn = lambda message, **_: shown.append(message)  # noqa: E731
    monkeypatch.setattr(handlers.gr, 'Warning', warn)
    return shown


@pytest.fixture
def draw(model, uploads, tmp_path):
    """Draw photos from an uploaded ZIP archive."""
    photos = write_photos(tmp_path, per_class=5)
    (photos / 'damaged.jpg').write_bytes(b'no photo')
    tab = SurveyTab(IdentifyTab(uploads, model))

    def draw(number=12):
        path = shutil.make_archive(uploads / 'new day', 'zip', photos)
        return tab.draw([dict(path=path)], '[]', number)

    return draw


def test_drawn_photos_are_shown_and_the_upload_is_deleted(
    draw, uploads, problems
):
    survey = draw()
    assert not problems and not [*uploads.rglob('*.*')]
    assert len(survey.photos) == len(survey.previews) == 12
    assert len(survey.folder.photos) == 20
    assert survey.choices == [*CLASSES, NONE]
    assert 'Photo 1 of 12' in survey.describe_progress()


def test_labels_are_corrected_skipped_and_counted(draw):
    survey = draw().label(CLASSES[0]).label('').go_back().go_back()
    assert (survey.position, survey.labeled) == (0, 1)
    survey = survey.label(NONE)
    assert survey.photos[0].label == NONE
    assert survey.label('forged') == survey
    with pytest.raises(ValueError, match='at least 10'):
        survey.estimate()
    while not survey.is_complete:
        survey = survey.label(CLASSES[1])
    assert survey.labeled == 12 and survey.label(CLASSES[0]) == survey
    result = survey.estimate()
    assert '**Result:**' in result and 'new day' in result
    assert '**Skipped:** 1 photo unreadable' in result
    assert 'damaged.jpg' in result and 'opened-' not in result


@pytest.mark.parametrize('number', [None, 9, 1e9, float('nan')])
def test_number_out_of_range_is_refused(number, draw, problems):
    assert draw(number) is None
    (problem,) = problems
    assert 'must be 10 to 200' in problem


def test_forged_upload_is_refused(model, uploads, problems):
    tab = SurveyTab(IdentifyTab(uploads, model))
    assert tab.draw([dict(path='/etc/passwd')], '[]', 12) is None
    (problem,) = problems
    assert 'not uploaded' in problem


def test_components_follow_the_survey(draw, model, uploads):
    with gr.Blocks():
        parts = build_survey(
            SurveyTab(IdentifyTab(uploads, model)), gr.State()
        )
    assert not parts.clear()[parts.photo].visible
    survey = draw(10)
    update = parts.show(survey)
    assert {*update} == {*parts.outputs}
    assert update[parts.photo].visible and update[parts.name].visible
    assert not update[parts.estimate].visible
    while not survey.is_complete:
        survey = survey.label(CLASSES[0])
    update = parts.show(survey, survey.estimate())
    assert not update[parts.photo].visible and update[parts.estimate].visible


@pytest.mark.slow
def test_visitor_labels_photos_in_a_browser(chromium, model, tmp_path):
    photos = write_photos(tmp_path, per_class=4)
    with (
        uploads_folder() as folder,
        serve(IdentifyTab(folder, model)) as (address, _),
        watched(chromium) as (page, _),
    ):
        page.goto(address)
        page.get_by_role('tab', name='Survey').click()
        page.locator('#survey_number input').fill('10')
        drop_folder(page, photos, '#surveyed')
        progress = page.locator('#survey_progress')
        for number in range(1, 11):
            expect(progress).to_contain_text(f'Photo {number} of 10')
            page.locator('#survey_class input').click()
            page.get_by_role('option', name=CLASSES[0]).click()
        result = page.locator('#survey_result')
        expect(result).to_contain_text('accuracy (95% CI')
        expect(result).to_contain_text('none of the classes')
        assert not [*folder.rglob('*.png')]
