# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Prediction sets and ticked classes in the web app, in a browser."""

import numpy as np
import pytest
import torch
from browser_pages import chromium, drive, playwright
from small_web_app import (
    CLASSES,
    NEEDS_RUNTIME,
    read_list,
    write_colors,
    write_small_app,
)

from mmclca.apis.answers import Answers, SetRule
from mmclca.deployment import describe_sets
from mmclca.evaluation.conformal import Calibration

__all__ = ['chromium']
expect = playwright.expect
pytestmark = [pytest.mark.slow, NEEDS_RUNTIME]
COARSE = dict.fromkeys(CLASSES, 'color') | {CLASSES[1]: 'green'}


def calibrate(number=300):
    generator = torch.Generator().manual_seed(0)
    logits = 6 * torch.randn(number, 6, generator=generator)
    probabilities = logits.softmax(1)
    labels = torch.multinomial(probabilities, 1, generator=generator)[:, 0]
    return Calibration(probabilities, labels, torch.arange(number) // 2)


@pytest.fixture
def photos(tmp_path):
    """Photos in random colors."""
    colors = np.random.default_rng(0).integers(0, 256, (9, 3))
    return write_colors(tmp_path, colors)


@pytest.fixture
def identify(chromium, photos, tmp_path):
    """Identify the photos after some classes were left out.

    Yield the rows of the table, the texts of the cards, and the page.
    """

    def identify(page):
        drive.identify(page, *photos)
        rows = read_list(page, tmp_path)[-len(photos) :]
        return rows, page.locator('article').all_inner_texts()[::-1]

    return identify


def read_scores(row):
    """Return the scores (K,) of a photo, of all but the worst class."""
    scores = {row[f'name_{i}']: row[f'score_{i}'] for i in range(1, 6)}
    return np.array([float(scores.get(x, 0)) for x in CLASSES], np.float32)


def test_app_has_the_sets_of_predict(chromium, identify, tmp_path):
    calibration = calibrate()
    write_small_app(tmp_path, sure=describe_sets(calibration, COARSE))
    rule = SetRule(95, calibration.find_threshold(95), COARSE)
    answers = Answers(CLASSES, rule=rule)
    with (
        drive.served(tmp_path / 'web') as address,
        chromium.new_page() as page,
    ):
        page.goto(address)
        rows, cards = identify(page)
        text = '95% of photos like the training photos'
        expect(page.locator('#guarantee')).to_contain_text(text)
    for row, card in zip(rows, cards, strict=True):
        scores = read_scores(row)
        answer = answers.apply(dict(image='', pred_scores=scores))
        assert row['sure_set'] == ' | '.join(answer['sure_set'])
        assert row['sure_answer'] == answer['sure_answer']
        assert f'95%: {answer["sure_answer"]}' in card
    assert {row['sure_set'].count('|') for row in rows} > {0}


def test_app_remembers_the_ticked_classes(chromium, identify, tmp_path):
    write_small_app(tmp_path, sure=describe_sets(calibrate(), COARSE))
    kept = [0, 2]
    names = [CLASSES[i] for i in kept]
    restricted = calibrate().among(kept)
    rule = SetRule(95, restricted.find_threshold(95), COARSE)
    answers = Answers(CLASSES, kept, rule)
    with (
        drive.served(tmp_path / 'web') as address,
        chromium.new_page() as page,
    ):
        page.goto(address)
        before, _ = identify(page)
        page.locator('#number').click()
        page.get_by_role('button', name='Untick all').click()
        expect(page.locator('#number')).to_have_text('6 classes')
        for name in names:
            page.get_by_label(name).check()
        page.reload()
        text = '2 of 6 classes can occur here'
        expect(page.locator('#number')).to_have_text(text)
        rows, _ = identify(page)
        page.locator('#number').click()
        page.get_by_role('button', name='Tick all', exact=True).click()
        again, _ = identify(page)
    for row, full in zip(rows, before, strict=True):
        assert {row['name_1'], row['name_2']} == {*names}
        assert row['name_3'] == ''
        scores = read_scores(full)
        if min(scores[kept]) > 1e-3:
            answer = answers.apply(dict(image='', pred_scores=scores))
            assert row['sure_set'] == ' | '.join(answer['sure_set'])
            score = float(row['score_1'])
            assert score == pytest.approx(answer['pred_score'], abs=1e-3)
    assert [x['sure_set'] for x in again] == [x['sure_set'] for x in before]


def test_app_says_why_nothing_is_guaranteed(chromium, identify, tmp_path):
    calibration = calibrate(36)  # 18 groups
    write_small_app(tmp_path, sure=describe_sets(calibration, {}))
    with (
        drive.served(tmp_path / 'web') as address,
        chromium.new_page() as page,
    ):
        page.goto(address)
        text = 'At least 19 photos are needed, found 18.'
        expect(page.locator('#guarantee')).to_contain_text(text)
        rows, cards = identify(page)
    assert {row['sure_answer'] for row in rows} == {''}
    assert not any('95%' in card for card in cards)
