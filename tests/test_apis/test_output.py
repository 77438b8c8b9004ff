# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import json

import numpy as np
import pytest

from mmclca.apis import best_classes, write_csv, write_json

CLASSES = ['ash', 'Bergahorn, groß', 'elm']
READ = dict(
    image='a/1.jpg',
    pred_scores=np.float32([0.2, 0.5, 0.3]),
    pred_label=1,
    **dict(pred_class=CLASSES[1], pred_score=0.5, known=True),
    known_score=0.75,
    tokens=[18, 9],
    gmacs=0.25,
    kept=[np.float32([[1, 0]]), np.float32([[0.5, 0]])],
    attribution=np.float32([[0.75, 0.25]]),
    cls_attention=np.float32([[0.5, 0.125]]),
)
UNREAD = dict(image=1, error='empty file')


def test_best_classes_come_first():
    first, second = best_classes(READ, CLASSES, topk=2)
    assert first == dict(label=1, name=CLASSES[1], score=0.5)
    assert second == dict(label=2, name='elm', score=0.3)
    assert len(best_classes(READ, CLASSES)) == 3
    assert best_classes(UNREAD, CLASSES) == []


def test_csv(tmp_path):
    out = tmp_path / 'new/results.csv'
    write_csv([READ, UNREAD], out, CLASSES, topk=2)
    header, read, unread = csv.reader(out.open(encoding='utf-8'))
    assert header == [
        *('image', 'pred_class', 'pred_score', 'known', 'known_score'),
        *('label_1', 'name_1', 'score_1', 'label_2', 'name_2', 'score_2'),
        *('tokens', 'gmacs', 'error'),
    ]
    answer = [CLASSES[1], '0.5', 'yes', '0.75']
    best = ['1', CLASSES[1], '0.5', '2', 'elm', '0.3']
    assert read == ['a/1.jpg', *answer, *best, '18 9', '0.25', '']
    assert unread == ['1', *[''] * 12, 'empty file']


def test_csv_of_plain_results_and_of_none(tmp_path):
    plain = {x: READ[x] for x in READ if x not in ('tokens', 'gmacs')}
    write_csv([plain], tmp_path / 'plain.csv', CLASSES, topk=9)
    header, row = csv.reader((tmp_path / 'plain.csv').open(encoding='utf-8'))
    assert len(header) == len(row) == 1 + 4 + 3 * 3 + 1
    write_csv([], tmp_path / 'none.csv', CLASSES)
    assert len(list(csv.reader((tmp_path / 'none.csv').open()))) == 1


@pytest.mark.parametrize('with_maps', [False, True])
def test_json(tmp_path, with_maps):
    out = tmp_path / 'new/results.json'
    write_json([READ, UNREAD], out, CLASSES, 1, with_maps)
    text = out.read_text(encoding='utf-8')
    assert 'groß' in text
    maps = dict(
        kept=[[[1, 0]], [[0.5, 0]]],
        attribution=[[0.75, 0.25]],
        cls_attention=[[0.5, 0.125]],
    )
    read = dict(
        image='a/1.jpg',
        **dict(pred_class=CLASSES[1], pred_score=0.5, known=True),
        known_score=0.75,
        classes=[dict(label=1, name=CLASSES[1], score=0.5)],
        tokens=[18, 9],
        gmacs=0.25,
        **(maps if with_maps else {}),
    )
    assert json.loads(text) == [
        read,
        dict(image=1, classes=[], error='empty file'),
    ]


def test_names_of_files_that_are_no_utf8(tmp_path):
    name = b'bl\xe4tt.jpg'.decode('utf-8', 'surrogateescape')
    results = [dict(UNREAD, image=name)]
    write_csv(results, tmp_path / 'a.csv', CLASSES)
    assert b'bl\xe4tt.jpg' in (tmp_path / 'a.csv').read_bytes()
    write_json(results, tmp_path / 'a.json', CLASSES)
    assert b'bl\xe4tt.jpg' in (tmp_path / 'a.json').read_bytes()
