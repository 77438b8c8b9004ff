# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classes, trust and languages of the web app, in a browser."""

import re

import numpy as np
import pytest
from browser_pages import chromium, drive, playwright
from small_web_app import (
    CLASSES,
    NEEDS_RUNTIME,
    read_list,
    write_colors,
    write_small_app,
)
from test_web_app_sets import calibrate

from mmclca.deployment import describe_sets
from mmclca.evaluation.conformal import predict_sets
from mmclca.languages import read_texts

__all__ = ['chromium']
expect = playwright.expect
pytestmark = [pytest.mark.slow, NEEDS_RUNTIME]
COLORS = np.random.default_rng(3).integers(0, 256, (12, 3))


@pytest.fixture
def photos(tmp_path):
    """Photos in random colors."""
    return write_colors(tmp_path, COLORS)


def measure_trust(calibration, threshold, is_sure):
    """Return the accuracy of photos with one class in their set, or more."""
    sets = predict_sets(calibration.probabilities, threshold)
    chosen = (sets.sum(1) == 1) == is_sure
    right = calibration.probabilities.argmax(1) == calibration.labels
    return f'{100 * right[chosen].float().mean():.1f}%'


def test_app_says_how_far_to_trust_an_answer(chromium, photos, tmp_path):
    calibration = calibrate()
    write_small_app(tmp_path, sure=describe_sets(calibration, {}))
    with (
        drive.served(tmp_path / 'web') as address,
        chromium.new_page() as page,
    ):
        page.goto(address)
        drive.identify(page, *photos)
        sure, check = page.locator('#meaning li').all_text_contents()
        words = page.locator('.trust').all_inner_texts()[::-1]
        rows = read_list(page, tmp_path)
    threshold = calibration.find_threshold(95)
    assert measure_trust(calibration, threshold, True) in sure
    assert measure_trust(calibration, threshold, False) in check
    for row, word in zip(rows, words, strict=True):
        expected = 'check' if '|' in row['sure_set'] else 'sure'
        assert row['trust'] == word.lower() == expected
    assert {row['trust'] for row in rows} == {'sure', 'check'}


@pytest.mark.parametrize('language', ['zh-CN', 'en-GB', 'eo'])
def test_app_has_the_language_of_the_browser(
    language, chromium, photos, tmp_path
):
    write_small_app(tmp_path)
    name = 'zh' if language == 'zh-CN' else 'en'
    texts = read_texts('app.')[name]
    with (
        drive.served(tmp_path / 'web') as address,
        chromium.new_context(locale=language) as context,
    ):
        page = context.new_page()
        page.goto(address)
        expect(page.locator('#offline')).to_have_text(texts['app.offline'])
        button = page.get_by_text(texts['app.files'], exact=True)
        expect(button).to_be_visible()
        page.set_input_files('#files', [str(photos[0])])
        expect(page.locator('.trust')).to_have_text(texts['app.trust.check'])
        page.set_input_files('#files', [str(tmp_path / 'model.onnx')])
        expect(page.locator('#errors')).to_contain_text(
            texts['app.photo.unreadable']
        )
        assert page.evaluate('document.documentElement.lang') == name
        shown = page.locator('body').inner_text()
        assert not re.search(r'app\.[a-z]|\{\w+\}|undefined', shown)
        if name == 'zh':
            rest = shown
            for known in (*CLASSES, 'model.onnx', '0.png', 'Übung', 'CSV'):
                rest = rest.replace(known, '')
            assert not re.search('[A-Za-z]{4,}', rest.replace('JPEG', ''))


def test_app_shows_a_photo_per_class_if_exported(chromium, photos, tmp_path):
    write_small_app(tmp_path, class_photos=photos[:6])
    with (
        drive.served(tmp_path / 'web') as address,
        chromium.new_page() as page,
    ):
        page.goto(address)
        page.locator('#number').click()
        pictures = page.locator('#classes img')
        expect(pictures).to_have_count(6)
        for i in range(6):
            color = pictures.nth(i).evaluate(
                """async (image) => {
                  await image.decode();
                  const canvas = document.createElement('canvas');
                  const context = canvas.getContext('2d');
                  context.drawImage(image, 0, 0);
                  return [...context.getImageData(9, 9, 1, 1).data];
                }"""
            )
            np.testing.assert_allclose(color[2::-1], COLORS[i], atol=8)
        drive.identify(page, photos[0])
        (row,) = page.locator('article').all()
        name = row.locator('ol span').first.inner_text()
        photo = row.get_by_alt_text(f'Training photo of {name}', exact=True)
        expect(photo).to_be_visible()
