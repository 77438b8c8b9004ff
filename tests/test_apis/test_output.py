# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tiny_model import write_tiny

from mmclca.apis import (
    TokenReductionInferencer,
    best_classes,
    draw_prediction,
    picture_paths,
    write_json,
    write_table,
)

CLASSES = ['ash', 'Bergahorn, groß', 'elm', *'fghi']
PREDICTION = dict(pred_class=CLASSES[1], pred_score=1 / 3, known=True)
PREDICTION['known_score'] = 2 / 3
BEST = dict(label=1, name=CLASSES[1], score=0.333333)
READ = dict(
    PREDICTION,
    image='a/1.jpg',
    pred_scores=np.float32([0.1, 1 / 3, 0.3, *[0.08] * 4]),
    pred_label=1,
    tokens=[18, 9],
    gmacs=0.25,
    kept=[np.float32([[1, 0]]), np.float32([[0.5, 0]])],
    attribution=np.float32([[0.75, 0.25]]),
    cls_attention=np.float32([[0.5, 0.125]]),
)
UNREAD = dict(image=1, error='empty file')


def rows_of(path):
    return list(csv.reader(path.open(encoding='utf-8-sig')))


def test_best_classes_are_sorted_by_score():
    first, second = best_classes(READ, CLASSES, topk=2)
    assert first == BEST
    assert second == dict(label=2, name='elm', score=0.3)
    assert len(best_classes(READ, CLASSES)) == 5
    assert best_classes(UNREAD, CLASSES) == []


def test_write_table_fills_every_column(tmp_path):
    out = tmp_path / 'new/results.csv'
    write_table([READ, UNREAD], out, CLASSES, topk=2)
    header, read, unread = rows_of(out)
    assert header == [
        *('image', 'result', 'confidence'),
        *('pred_class', 'pred_score', 'known', 'known_score'),
        *('label_1', 'name_1', 'score_1', 'label_2', 'name_2', 'score_2'),
        *('tokens', 'gmacs', 'error'),
    ]
    answer = [CLASSES[1], '0.333333'] * 2 + ['yes', '0.666667']
    best = ['1', CLASSES[1], '0.333333', '2', 'elm', '0.3']
    assert read == ['a/1.jpg', *answer, *best, '18 9', '0.25', '']
    assert unread == ['1', *[''] * 14, 'empty file']
    assert out.read_bytes().startswith(b'\xef\xbb\xbf')  # for Excel


def test_unknown_photos_come_first_if_sorted_by_confidence(tmp_path):
    unknown = dict(READ, known=False, image='=1+1', pred_score=0.99)
    out = tmp_path / 'results.xlsx'
    write_table([READ, unknown, UNREAD], out, CLASSES)
    sheet = pd.read_excel(out)
    assert list(sheet.result[:2]) == [CLASSES[1], 'unknown']
    assert sheet.confidence.idxmin() == 1
    assert sheet.image[1] == '=1+1' and sheet.pred_score[1] == 0.99


def test_write_table_omits_token_columns_if_results_lack_them(tmp_path):
    plain = {x: READ[x] for x in READ if x not in ('tokens', 'gmacs')}
    for options, number in ({}, 5), (dict(topk=9), 7):
        write_table([plain], tmp_path / 'plain.csv', CLASSES, **options)
        header, row = rows_of(tmp_path / 'plain.csv')
        assert len(header) == len(row) == 1 + 6 + 3 * number + 1


@pytest.mark.parametrize('options', [{}, dict(topk=1, with_maps=True)])
def test_write_json_has_an_entry_per_image(tmp_path, options):
    out = tmp_path / 'new/results.json'
    write_json([READ, UNREAD], out, CLASSES, **options)
    text = out.read_text(encoding='utf-8')
    maps = dict(
        kept=[[[1, 0]], [[0.5, 0]]],
        attribution=[[0.75, 0.25]],
        cls_attention=[[0.5, 0.125]],
    )
    read = dict(
        PREDICTION,
        image='a/1.jpg',
        classes=[BEST] if options else best_classes(READ, CLASSES),
        tokens=[18, 9],
        gmacs=0.25,
        **(maps if options else {}),
    )
    assert 'groß' in text
    assert json.loads(text) == [read, dict(UNREAD, classes=[])]


def test_writers_keep_file_names_without_utf8(tmp_path):
    name = b'bl\xe4tt.jpg'.decode('utf-8', 'surrogateescape')
    for write in (write_table, write_json):
        write([dict(UNREAD, image=name)], tmp_path / 'a', CLASSES)
        assert b'bl\xe4tt.jpg' in (tmp_path / 'a').read_bytes()


def test_picture_paths_follow_the_images_and_replace_none(tmp_path):
    images = [str(tmp_path / x) for x in ('a/x.jpg', 'a/x.png', 'b/x.jpg')]
    out = tmp_path / 'out'
    expected = [out / f'{x}.png' for x in ('a/x.jpg', 'a/x.png', 'b/x.jpg')]
    assert picture_paths(images, out) == expected
    assert picture_paths(images[:1], out) == [out / 'x.jpg.png']
    with pytest.raises(ValueError, match='replace'):
        picture_paths(images, tmp_path)


def test_draw_prediction_adds_a_column_per_stage(tmp_path):
    widths = []
    for reduce_at in ((1,), (0, 1, 2)):
        folder = tmp_path / str(len(reduce_at))
        folder.mkdir()
        model = write_tiny(folder, reduce_at=reduce_at)
        inferencer = TokenReductionInferencer(model)
        image = np.full((50, 40, 3), (0, 60, 200), np.uint8)  # BGR
        (result,) = inferencer(image)
        draw_prediction(inferencer, image, result, folder / 'new/one.png')
        picture = Image.open(folder / 'new/one.png').convert('RGB')
        widths.append(picture.width)
        seen = (np.asarray(picture) == (200, 60, 0)).all(-1).mean()
        assert seen > 0.15  # the image itself, as RGB
    assert widths[1] > 1.6 * widths[0]
