# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import json

import numpy as np
import pytest

from mmclca.apis import write_json, write_table
from mmclca.apis.plants import combine_results
from mmclca.evaluation.open_set import NEAREST, Threshold

CLASSES = ['ash', 'elm', 'oak']
THRESHOLD = Threshold(NEAREST, 0.5, '')


def result(image, scores, known_score=None):
    return dict(
        image=image,
        pred_scores=np.float32(scores),
        known=known_score and known_score >= 0.5,
        known_score=known_score,
    )


UNREAD = dict(image='b/2.jpg', error='empty file')
RESULTS = [
    result('a/1.jpg', [0.5, 0.3, 0.2], 0.7),
    result('b/1.jpg', [0.9, 0.1, 0.0], 0.4),
    result('a/2.jpg', [0.1, 0.6, 0.3], 0.2),
    UNREAD,
    dict(UNREAD, image='c/1.jpg'),
]
PLANTS = ['a', 'b', 'a', 'b', 'c']


@pytest.fixture
def combined():
    return combine_results(RESULTS, PLANTS, CLASSES, 0.5, THRESHOLD)


def test_plants_are_combined_in_the_order_of_their_photos(combined):
    first, second, third = combined
    assert [x['plant'] for x in combined] == ['a', 'b', 'c']
    assert first['images'] == ['a/1.jpg', 'a/2.jpg']
    # two photos with dependence 0.5 count as 4/3
    expected = np.array([0.05, 0.18, 0.06]) ** (2 / 3)
    assert np.allclose(first['pred_scores'], expected / expected.sum())
    assert (first['pred_class'], first['pred_label']) == ('elm', 1)
    assert first['pred_score'] == pytest.approx(first['pred_scores'][1])
    assert np.allclose(second['pred_scores'], [0.9, 0.1, 0], atol=1e-6)
    assert second['unreadable'] == ['b/2.jpg'] and 'error' not in second
    assert third['images'] == [] and 'error' in third


def test_plant_is_flagged_if_the_mean_score_is_below_the_threshold(combined):
    first, second, _ = combined
    assert first['known_score'] == pytest.approx(0.45)
    assert first['known'] is False and second['known'] is False
    photos = [result('1', [1, 0, 0], 0.9), result('2', [1, 0, 0], 0.3)]
    (known,) = combine_results(photos, 'pp', CLASSES, 0.5, THRESHOLD)
    assert known['known'] is True
    (without,) = combine_results(photos, 'pp', CLASSES, 0.5)
    assert without['known'] is None and without['known_score'] is None


def test_classes_that_cannot_occur_are_left_out():
    scores = [0.7, np.nan, 0.3], [0.2, np.nan, 0.8]
    photos = [result(str(i), x) for i, x in enumerate(scores)]
    (plant,) = combine_results(photos, 'pp', CLASSES, 0.5)
    expected = np.array([0.14, 0.24]) ** (2 / 3)
    assert np.allclose(plant['pred_scores'][[0, 2]], expected / expected.sum())
    assert np.isnan(plant['pred_scores'][1]) and plant['pred_class'] == 'oak'


def test_tables_have_one_row_per_plant_with_its_photos(combined, tmp_path):
    write_table(combined, tmp_path / 'plants.csv', CLASSES, topk=1)
    with (tmp_path / 'plants.csv').open(encoding='utf-8-sig') as file:
        first, second, third = csv.DictReader(file)
    assert [*first][:5] == [
        *('plant', 'photos', 'images'),
        *('result', 'confidence'),
    ]
    assert first['photos'] == '2'
    assert first['images'] == 'a/1.jpg | a/2.jpg'
    assert (first['result'], first['pred_class']) == ('unknown', 'elm')
    assert second['photos'] == '1' and second['error'].endswith('b/2.jpg')
    assert third['photos'] == '0' and third['pred_class'] == ''
    assert third['error'].endswith('c/1.jpg')


def test_json_has_one_entry_per_plant_with_its_photos(combined, tmp_path):
    write_json(combined, tmp_path / 'plants.json', CLASSES)
    first, second, third = json.loads((tmp_path / 'plants.json').read_text())
    assert first['photos'] == 2 and first['classes'][0]['name'] == 'elm'
    assert first['images'] == ['a/1.jpg', 'a/2.jpg']
    assert second['unreadable'] == ['b/2.jpg']
    assert third['photos'] == 0 and third['error']
