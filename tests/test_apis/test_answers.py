# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Results restricted to classes, and answers with a guarantee."""

import numpy as np
import pytest

from mmclca.apis.answers import (
    Answers,
    SetRule,
    prepare_answers,
    read_class_list,
    summarize_sets,
)
from mmclca.errors import Error

CLASSES = ['ash', 'elm', 'oak a', 'oak b']
COARSE = {'ash': 'ash', 'elm': 'elm', 'oak a': 'oak', 'oak b': 'oak'}
RULE = SetRule(95, 0.5, COARSE)


def make_result(*scores):
    scores = np.array(scores, np.float32)
    label = int(scores.argmax())
    return dict(
        image='a.jpg',
        pred_label=label,
        pred_class=CLASSES[label],
        pred_score=float(scores[label]),
        pred_scores=scores,
        known=None,
        known_score=None,
    )


@pytest.mark.parametrize(
    ('scores', 'answer', 'names'),
    [
        ((0.7, 0.1, 0.1, 0.1), 'ash', ['ash']),
        ((0.05, 0.05, 0.4, 0.5), 'oak', ['oak b', 'oak a']),
        ((0.1, 0.3, 0.5, 0.1), 'oak a | elm', ['oak a', 'elm']),
    ],
)
def test_answer_is_a_class_a_coarse_class_or_all_classes(
    scores, answer, names
):
    result = Answers(CLASSES, rule=RULE).apply(make_result(*scores))
    assert (result['sure_answer'], result['sure_set']) == (answer, names)


def test_answer_names_all_classes_if_there_are_no_coarse_ones():
    scores = np.array([0.0, 0.0, 0.5, 0.5], np.float32)
    answer = SetRule(95, 0.5).answer(scores, CLASSES)
    assert answer['sure_answer'] == 'oak a | oak b'


def test_restricted_scores_sum_to_one_and_others_are_missing():
    answers = Answers(CLASSES, [1, 3], RULE)
    result = answers.apply(make_result(0.5, 0.1, 0.1, 0.3))
    assert (result['pred_class'], result['pred_label']) == ('oak b', 3)
    assert result['pred_score'] == pytest.approx(0.75)
    scores = result['pred_scores']
    assert np.isnan(scores[[0, 2]]).all()
    assert scores[[1, 3]] == pytest.approx([0.25, 0.75])
    assert result['sure_set'] == ['oak b']
    unlikely = answers.apply(make_result(1, 0, 0, 0))
    assert unlikely['pred_score'] == pytest.approx(0.5)
    unreadable = dict(image='b.jpg', error='empty file')
    assert answers.apply(unreadable) == unreadable


def test_class_list_is_read_in_any_order(tmp_path):
    path = tmp_path / 'here.txt'
    path.write_text('\ufeffoak  b\n\n ash \nash\n', encoding='utf-8')
    assert read_class_list(path, CLASSES) == [0, 3]


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('ash\noak\n', "no class 'oak' .do you mean oak [ab]"),
        ('ash\n', 'lists 1 classes; list at least two'),
        ('', 'lists 0 classes'),
    ],
)
def test_wrong_class_lists_are_refused(tmp_path, text, problem):
    path = tmp_path / 'here.txt'
    path.write_text(text)
    with pytest.raises(Error, match=problem):
        read_class_list(path, CLASSES)


def test_guarantee_needs_a_model_folder_and_a_level(tmp_path):
    with pytest.raises(Error, match='needs a model folder'):
        prepare_answers(tmp_path / 'best.pth', CLASSES, sure=95)
    for level in (49, 100, '95', True):
        with pytest.raises(Error, match='sure='):
            prepare_answers(tmp_path, CLASSES, sure=level)


def test_summary_counts_answers_by_their_kind():
    answers = Answers(CLASSES, rule=RULE)
    results = [
        answers.apply(make_result(*scores))
        for scores in (
            (0.7, 0.1, 0.1, 0.1),
            (0.8, 0.1, 0.1, 0.0),
            (0.0, 0.0, 0.5, 0.5),
            (0.5, 0.5, 0.0, 0.0),
        )
    ]
    results.append(dict(image='b.jpg', error='empty file'))
    assert summarize_sets(results, 95) == (
        'With 95% guarantee, if photos are like the training photos: '
        'one class for 2, a coarse class for 1, several '
        'classes for 1'
    )
