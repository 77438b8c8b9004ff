# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Survey of an uploaded folder: photos to label, and the result."""

import shutil

import pytest
from browser_pages import chromium as chromium_fixture
from browser_pages import drop_folder, playwright, watched
from tiny_photos import write_photos
from tiny_run import CLASSES

from mmclca.survey.text import NONE

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

import gradio as gr

from mmclca.page.identify import IdentifyTab
from mmclca.page.server import serve, uploads_folder
from mmclca.page.survey import SurveyTab
from mmclca.page.survey_layout import build_survey

chromium = chromium_fixture
expect = playwright.expect


@pytest.fixture
def draw(recorded_model, empty_uploads, tmp_path):
    """Draw photos from an uploaded ZIP archive."""
    photos = write_photos(tmp_path, per_class=5)
    (photos / 'damaged.jpg').write_bytes(b'no photo')
    tab = SurveyTab(IdentifyTab(empty_uploads, recorded_model))

    def draw(number=12):
        path = shutil.make_archive(empty_uploads / 'new day', 'zip', photos)
        return tab.draw([dict(path=path)], '[]', number)

    return draw


def test_drawn_photos_are_shown_and_the_upload_is_deleted(
    draw, empty_uploads, problems
):
    survey = draw()
    assert not problems and not [*empty_uploads.rglob('*.*')]
    assert len(survey.photos) == len(survey.previews) == 12
    assert len(survey.folder.photos) == 20
    assert [*survey.choices.values()] == [*CLASSES, NONE]
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


def test_forged_upload_is_refused(recorded_model, empty_uploads, problems):
    tab = SurveyTab(IdentifyTab(empty_uploads, recorded_model))
    assert tab.draw([dict(path='/etc/passwd')], '[]', 12) is None
    (problem,) = problems
    assert 'not uploaded' in problem


def test_components_follow_the_survey(draw, recorded_model, empty_uploads):
    with gr.Blocks():
        parts = build_survey(
            SurveyTab(IdentifyTab(empty_uploads, recorded_model)), gr.State()
        )
    assert not parts.clear()[parts.photo].visible
    assert parts.clear()[parts.source].open
    survey = draw(10)
    update = parts.show(survey)
    assert {*update} == {*parts.outputs}
    assert update[parts.photo].visible and update[parts.name].visible
    assert not update[parts.estimate].visible
    assert not update[parts.source].open
    while not survey.is_complete:
        survey = survey.label(CLASSES[0])
    update = parts.show(survey, survey.estimate())
    assert not update[parts.photo].visible
    assert not update[parts.estimate].visible  # the result is shown
    assert parts.show(survey)[parts.estimate].visible


@pytest.mark.slow
def test_visitor_labels_photos_in_a_browser(
    chromium, recorded_model, tmp_path
):
    photos = write_photos(tmp_path, per_class=4)
    with (
        uploads_folder() as folder,
        serve(IdentifyTab(folder, recorded_model)) as (address, _),
        watched(chromium) as (page, _),
    ):
        page.goto(address)
        page.get_by_role('tab', name='Survey').click()
        page.locator('#survey_number input').fill('10')
        drop_folder(page, photos, '#surveyed')
        progress = page.locator('#survey_progress')
        expect(page.locator('#surveyed')).not_to_be_visible()
        for number in range(1, 11):
            expect(progress).to_contain_text(f'Photo {number} of 10')
            page.locator('#survey_class input').click()
            page.get_by_role('option', name=CLASSES[0]).click()
        result = page.locator('#survey_result')
        expect(result).to_contain_text('accuracy (95% CI')
        expect(result).to_contain_text('none of the classes')
        assert not [*folder.rglob('*.png')]
