# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Losses, bank and scores of Grafit against stored values, in float64."""

from functools import partial

import pytest
import torch
from public_cases import by_system, public

from mmclca.evaluation.retrieval import measure_queries
from mmclca.models.selfsup.grafit import (
    instance_loss,
    knn_loss,
    knn_scores,
    ranking_scores,
    update_bank,
)

DRAWN = public('family')
cases = partial(by_system, DRAWN.load()[0])


def given(case, name):
    return DRAWN.given(case, name)


def near(found, expected, scale=1e-6):
    found = torch.as_tensor(found, dtype=torch.float64)
    expected = torch.as_tensor(expected, dtype=torch.float64)
    limit = scale * max(1, expected.abs().max().item())
    torch.testing.assert_close(found, expected, rtol=0, atol=limit)


@cases('grafit_loss')
def test_grafit_losses_equal_stored_values(case):
    views, expect = range(case['views']), case['expect']
    online = [given(case, f'online{v}').requires_grad_() for v in views]
    target = [given(case, f'target{v}').requires_grad_() for v in views]
    embedding = given(case, 'embedding').requires_grad_()
    rest = (
        given(case, 'bank'),
        *map(torch.tensor, (case['index'], case['labels'])),
    )
    rest = *rest, case['sigma']
    each = knn_loss(embedding, *rest, reduction='none')
    near(each, [value or 0.0 for value in expect['knn_each']])
    counted = knn_loss(embedding, *rest, reduction='counted')
    near(counted, expect['knn_mean_counted'])
    knn, instance = knn_loss(embedding, *rest), instance_loss(online, target)
    near(knn, expect['knn_mean_batch'])
    near(instance, expect['instance'])
    near(knn + instance, expect['total'])
    (knn + instance).backward()
    near(DRAWN.sums(embedding.grad), expect['grad_embedding'])
    for view, tensor in enumerate(online):
        near(tensor.grad.norm(), expect['grad_norm'][f'online{view}'])
    assert all(tensor.grad is None for tensor in target)


@cases('grafit_bank')
def test_grafit_bank_equals_stored_values(case):
    bank, embedding = given(case, 'bank'), given(case, 'embedding')
    index, expect = torch.tensor(case['index']), case['expect']
    found = update_bank(bank, embedding, index)
    near(DRAWN.sums(found), expect['bank'])
    near(found[index].norm(dim=1), expect['norms'])
    for row, values in expect['rows'].items():
        near(found[int(row)][: len(values)], values)


@cases('grafit_knn')
def test_grafit_votes_equal_stored_values(case):
    bank, labels = given(case, 'bank'), torch.tensor(case['labels'])
    settings = case['k'], case['sigma'], case['num_classes']
    scores = knn_scores(given(case, 'queries'), bank, labels, *settings)
    near(scores, case['expect']['scores'])
    assert scores.argmax(1).tolist() == case['expect']['prediction']


@cases('grafit_retrieval')
@pytest.mark.parametrize('ranking', ['cosine', 'conditional', 'oracle'])
def test_grafit_rankings_equal_stored_values(case, ranking):
    bank, coarse = given(case, 'bank'), torch.tensor(case['coarse_of'])
    labels = torch.tensor(case['labels'])
    wanted = torch.tensor(case['query_labels'])
    known = dict(sigma=case['sigma'], query_coarse=coarse[wanted])
    gallery = bank, coarse[labels], ranking
    scores = ranking_scores(given(case, 'queries'), *gallery, **known)
    found = measure_queries(scores, wanted[:, None] == labels, ())['mAP']
    near(found, case['expect']['ap'][ranking])
