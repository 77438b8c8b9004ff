# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Several photos of one plant in the web app, in a browser."""

import cv2
import numpy as np
import pytest
from browser_pages import chromium, drive, playwright
from small_web_app import CLASSES, write_small_app

from mmclca.apis.plants import combine_results
from mmclca.deployment import web_app
from mmclca.evaluation.fusion import DEPENDENCE
from mmclca.utils.files import read_rows

__all__ = ['chromium']
expect = playwright.expect
missing = not web_app._RUNTIME.is_file()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(missing, reason='no onnxruntime-web'),
]


@pytest.fixture
def photos(tmp_path):
    """Three photos in similar colors."""
    paths = [tmp_path / f'{i}.png' for i in range(3)]
    for path, color in zip(paths, [80, 120, 90], strict=True):
        image = np.full((60, 90, 3), [color, 90, 100], np.uint8)
        cv2.imwrite(str(path), image)
    return paths


def read_list(page, path):
    """Export the list, and return its rows."""
    with page.expect_download() as download:
        page.get_by_role('button', name='Export CSV').click()
    download.value.save_as(path)
    return read_rows(path)


def read_scores(row):
    """Return all scores; the worst class has the rest."""
    scores = {row[f'name_{i}']: float(row[f'score_{i}']) for i in range(1, 6)}
    rest = 1 - sum(scores.values())
    return np.array([scores.get(name, rest) for name in CLASSES], np.float32)


def test_scores_are_combined_if_a_photo_of_the_plant_is_added(
    chromium, photos, tmp_path
):
    write_small_app(tmp_path)
    with (
        drive.served(tmp_path / 'web') as address,
        chromium.new_page() as page,
    ):
        page.goto(address)
        drive.identify(page, *photos)
        singles = read_list(page, tmp_path / 'singles.csv')
        card = page.locator('article').last  # of the first photo
        button = card.get_by_label('Add another photo of this plant')
        button.set_input_files([str(path) for path in photos[1:]])
        expect(card).to_contain_text('0.png | 1.png | 2.png')
        rows = read_list(page, tmp_path / 'list.csv')
        expect(page.locator('article')).to_have_count(3)
    assert len(rows) == 3
    assert [row['photos'] for row in rows] == ['3', '1', '1']
    assert rows[1:] == singles[1:]
    plant, results = rows[0], []
    for row in singles:
        scores = read_scores(row)
        results.append(dict(image=row['image'], pred_scores=scores))
    (combined,) = combine_results(results, 'ppp', CLASSES, DEPENDENCE)
    assert plant['image'] == '0.png | 1.png | 2.png'
    assert plant['pred_class'] == combined['pred_class']
    best = float(plant['score_1'])
    assert best == pytest.approx(combined['pred_score'], abs=2e-3)
    assert best != pytest.approx(results[0]['pred_scores'].max(), abs=2e-3)
