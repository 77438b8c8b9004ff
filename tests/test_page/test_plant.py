# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Several photos of a plant on the page, and classes that can occur."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from browser_pages import chromium as chromium_fixture
from browser_pages import drive, playwright, watched
from PIL import Image
from tiny_model import write_tiny
from tiny_run import CLASSES

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.answers import Answers, SetRule, prepare_answers
from mmclca.apis.plants import combine_results
from mmclca.evaluation.calibration_file import write_calibration
from mmclca.evaluation.conformal import Calibration
from mmclca.evaluation.fusion import DEPENDENCE
from mmclca.evaluation.open_set import Threshold
from mmclca.fitting.fit_folder import FitFolder
from mmclca.page import open_model

pytest.importorskip('gradio', reason='extra demo: pip install gradio')

import gradio as gr

from mmclca.page.blocks import build_tabs
from mmclca.page.identify import IdentifyTab
from mmclca.page.loaded_model import LoadedModel
from mmclca.page.server import serve, uploads_folder

chromium = chromium_fixture
expect = playwright.expect
TWO = [CLASSES[2], CLASSES[0]]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Folder with a model ``tiny.pth`` and three photos in ``uploads``."""
    folder = tmp_path_factory.mktemp('plant')
    torch.manual_seed(0)
    write_tiny(folder)
    (folder / 'uploads').mkdir()
    rng = np.random.default_rng(0)
    for number in range(3):
        noise = rng.integers(0, 255, (32, 32, 3), np.uint8)
        Image.fromarray(noise).save(folder / f'uploads/{number}.png')
    return folder


@pytest.fixture(scope='module')
def tab(folder):
    return IdentifyTab(folder / 'uploads', open_model(folder / 'tiny.pth'))


@pytest.fixture
def photo(tab):
    """Return the message for an uploaded photo."""
    return lambda number: dict(path=tab.uploads / f'{number}.png')


def identify(tab, photo, numbers, among=()):
    """Identify photos of one plant; return the last answer."""
    first, *others = numbers
    shown, _ = tab.identify(photo(first), among=[*among])
    for number in others:
        shown, _ = tab.add_photo(photo(number), shown.plant, [*among])
    return shown


@pytest.mark.parametrize('among', [(), TWO])
def test_photos_of_a_plant_are_combined_as_by_predict(
    among, folder, tab, photo
):
    paths = [str(tab.uploads / f'{number}.png') for number in range(3)]
    inferencer = TokenReductionInferencer(folder / 'tiny.pth')
    labels = sorted(CLASSES.index(name) for name in among) or None
    results = map(Answers(CLASSES, labels).apply, inferencer(paths))
    (expected,) = combine_results([*results], ['a'] * 3, CLASSES, DEPENDENCE)
    shown = identify(tab, photo, range(3), among)
    scores = shown.answer.prediction.scores
    assert {*scores} == {*(among or CLASSES)}
    assert next(iter(scores)) == expected['pred_class']
    assert max(scores.values()) == pytest.approx(expected['pred_score'], 1e-4)
    assert '3 photos' in shown.answer.verdict


def test_chosen_classes_apply_to_earlier_photos(tab, photo):
    plant = identify(tab, photo, [0, 1]).plant
    expected = identify(tab, photo, [0, 1], TWO).answer
    assert plant.answer(TWO) == expected
    assert sum(expected.prediction.scores.values()) == pytest.approx(1)
    assert plant.answer(TWO[:1]) == plant.answer() == plant.answer(['forged'])


def test_guarantee_is_for_one_photo_among_the_chosen_classes(
    tab, photo, monkeypatch
):
    asked_for = []

    def find_rule(self, labels):
        asked_for.append(labels)
        return SetRule(95, 0.0)

    monkeypatch.setattr(LoadedModel, 'find_rule', find_rule)
    shown = identify(tab, photo, [0], TWO)
    assert asked_for == [[0, 2]]
    assert all(name in shown.answer.guarantee for name in TWO)
    assert CLASSES[1] not in shown.answer.guarantee
    assert identify(tab, photo, [0, 1]).answer.guarantee == ''


def test_rule_for_chosen_classes_is_the_one_of_predict(tab, tmp_path):
    (tmp_path / 'model.pth').touch()
    (tmp_path / 'fit.json').write_text('{"final": "probe"}')
    files = FitFolder(tmp_path)
    model = replace(tab.model, files=files)
    assert model.find_rule(None) is None  # a model of an earlier version
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.rand(60, 4, generator=generator).softmax(1)
    labels = torch.arange(60) % 4
    write_calibration(
        files.cv_probabilities,
        Calibration(probabilities, labels, torch.arange(60)),
    )
    (tmp_path / 'here.txt').write_text('\n'.join(TWO))
    predict = prepare_answers(tmp_path, CLASSES, tmp_path / 'here.txt', 95)
    assert model.find_rule([0, 2]) == predict.rule
    assert model.find_rule(None) != predict.rule


@pytest.fixture
def flag_all(tab, monkeypatch):
    """Flag all photos as unknown."""
    threshold = Threshold('energy', 1e9, 'tiny')
    monkeypatch.setattr(tab.model.inferencer, 'threshold', threshold)


def test_guarantee_has_a_condition_if_the_class_may_be_unknown(
    tab, photo, flag_all, monkeypatch
):
    monkeypatch.setattr(LoadedModel, 'find_rule', lambda *_: SetRule(95, 1.0))
    answer = identify(tab, photo, [0]).answer
    assert answer.guarantee.startswith('If it shows a known class')
    assert answer.unknown in answer.verdict


def test_plant_is_unknown_by_the_mean_score(tab, photo, flag_all):
    scores = [
        identify(tab, photo, [number]).answer.prediction.known_score
        for number in (0, 1)
    ]
    shown = identify(tab, photo, [0, 1])
    prediction = shown.answer.prediction
    assert prediction.known_score == pytest.approx(np.mean(scores))
    assert prediction.is_known is False
    assert 'These photos' in shown.answer.unknown


def test_unusable_further_photo_changes_nothing(tab, photo):
    plant = identify(tab, photo, [0]).plant
    (tab.uploads / 'bad.png').write_text('no photo')
    with pytest.warns(UserWarning, match='cannot be read'):
        assert [*tab.add_photo(photo('bad'), plant)] == []
    with pytest.warns(UserWarning, match='no first photo'):
        assert [*tab.add_photo(photo(1), None)] == []


@pytest.mark.parametrize('among', [None, 5, 'oak', [['oak']]])
def test_forged_choice_means_all_classes(among, tab, photo):
    shown, _ = tab.identify(photo(0), among=among)
    assert {*shown.answer.prediction.scores} == {*CLASSES}


def test_components_offer_another_photo_and_the_classes(tab, photo):
    with gr.Blocks(), gr.Tabs():
        tabs = build_tabs(tab, gr.State())
    parts = tabs.photo
    update = tabs.show(None)
    assert update[parts.among].choices == [(x, x) for x in CLASSES]
    assert update[parts.among].visible
    assert not update[parts.another].visible
    update = parts.show(identify(tab, photo, [0]))
    assert update[parts.another].visible and update[parts.restart].visible
    assert parts.among not in update
    assert not parts.show_classes(CLASSES[:2])[parts.among].visible


@pytest.mark.slow
def test_visitor_adds_a_photo_and_chooses_classes(chromium, folder, tab):
    with (
        uploads_folder() as uploads,
        serve(IdentifyTab(uploads, tab.model)) as (address, _),
        watched(chromium, viewport=dict(width=360, height=900)) as (page, _),
    ):
        page.goto(address)
        classes, verdict = page.locator('#classes'), page.locator('#verdict')
        expect(page.locator('#among')).to_be_visible()
        expect(page.locator('#another')).not_to_be_visible()
        drive.drop(page, folder / 'uploads/0.png')
        drive.wait_for_scores(page)
        with page.expect_file_chooser() as chooser:
            page.locator('#another').click()
        chooser.value.set_files(folder / 'uploads/1.png')
        expect(verdict).to_contain_text('2 photos')
        for name in TWO:
            page.locator('#among input').click()
            page.get_by_role('option', name=name).click()
        expect(classes).not_to_contain_text(CLASSES[1])
        expect(classes).to_contain_text(TWO[0])
        expect(verdict).to_contain_text('2 photos')
        assert page.evaluate('document.body.scrollWidth') <= 360
        page.locator('#restart').click()
        expect(page.locator('#another')).not_to_be_visible()
        drive.drop(page, folder / 'uploads/2.png')
        expect(classes).to_contain_text(TWO[1])
        expect(classes).not_to_contain_text(CLASSES[1])
        expect(verdict).not_to_contain_text('photos')
