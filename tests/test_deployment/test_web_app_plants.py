# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Several photos of one plant in the web app, in a browser."""

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

from mmclca.apis.plants import combine_results
from mmclca.evaluation.fusion import DEPENDENCE

__all__ = ['chromium']
expect = playwright.expect
pytestmark = [pytest.mark.slow, NEEDS_RUNTIME]


@pytest.fixture
def photos(tmp_path):
    """Three photos in similar colors."""
    return write_colors(tmp_path, [(x, 90, 100) for x in (80, 120, 90)])


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
        singles = read_list(page, tmp_path)
        card = page.locator('article').last  # of the first photo
        button = card.get_by_label('Add another photo of this plant')
        button.set_input_files([str(path) for path in photos[1:]])
        expect(card).to_contain_text('0.png | 1.png | 2.png')
        rows = read_list(page, tmp_path)
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
