# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Reported accuracy of an int8 file compared with float32."""

from types import SimpleNamespace

import pytest
import torch

from mmclca.benchmark import quantized
from mmclca.utils.files import write_rows

COLUMNS = ('path', 'class', 'used', 'why_not')
TRAINED = [(f'{i}.jpg', 'ash', True, '') for i in range(3)]
OUT = [
    ('a.jpg', 'ash', False, 'held out in test'),
    ('b.jpg', 'elm', False, 'held out in val'),
    ('c.jpg', 'elm', False, 'held out in val'),
]
LEFT = [('d.jpg', '', False, 'same as a.jpg')]


@pytest.fixture
def said(tmp_path, monkeypatch):
    """Report on rows of photographs.csv, some of them unreadable."""

    def read(_, paths, function, *__):
        images = torch.eye(3)[[i for i in range(3) if i not in gone]]
        return function(images).flatten(1), dict.fromkeys(gone, 'gone')

    def said(rows, *unread):
        gone[:] = unread
        write_rows(tmp_path / 'photographs.csv', [COLUMNS, *rows])
        found = quantized.photographs_of(tmp_path)
        # float32 predicts ash, elm, elm and int8 ash, ash, elm
        whole = torch.tensor([[1.0, 0], [0, 1], [0, 1]])
        small = torch.tensor([[1.0, 0], [1, 0], [0, 1]])
        model = SimpleNamespace(classes=['ash', 'elm'])
        # files exported from a fit also return the unknown-class score
        runs = (lambda x: x @ small), (lambda x: (x @ whole, x[:, 0]))
        return quantized._agreement(model, found, *runs)

    gone = []
    monkeypatch.setattr(quantized, 'outputs_of', read)
    return said


def test_accuracy_is_reported_on_hold_out_photos(said):
    text = said(TRAINED + OUT + LEFT)
    assert 'int8 2 of 3' in text and 'float32 3 (' in text
    text = said(TRAINED + OUT, 1)
    assert 'int8 2 of 2' in text and 'float32 2' in text


def test_agreement_is_reported_if_only_training_photos_exist(said):
    assert '2 of 3 training photos' in said(TRAINED + LEFT)
    assert 'not measured' in said(TRAINED, 0, 1, 2)
