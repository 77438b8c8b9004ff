# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Agreement of timm's reduced models with the full ones."""

import agreement
import frozen
import pandas as pd
import pytest
from tiny_run import ROOT

from mmclca.models import list_methods


def test_tables_of_timm_page_equal_their_data(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (ROOT / 'docs/timm.md').read_text(encoding='utf-8')
    page = tmp_path / 'timm.md'
    page.write_text(text, encoding='utf-8')
    agreement.write_page(page)
    assert page.read_text(encoding='utf-8') == text


def test_every_method_and_rate_is_in_the_table(monkeypatch):
    monkeypatch.chdir(ROOT)
    rows = pd.read_csv(agreement.TABLE)
    keys = ['network', 'method', 'keep_rate']
    assert not rows.duplicated(keys).any()
    for _, table in rows[rows.method != 'none'].groupby('network'):
        assert {*table.method} == {*list_methods()}
        assert len(table) == len(list_methods()) * len(agreement.RATES)
    full = rows[rows.method == 'none']
    assert len(full) == 2 and (full.agreement == 100).all()


@pytest.mark.slow
def test_agreement_is_measured(shared, monkeypatch):
    monkeypatch.setattr(frozen, 'DATA', shared / 'data')
    monkeypatch.setattr(agreement, 'WEIGHTS', shared / 'weights')
    monkeypatch.setattr(agreement, 'SETS', ('leaf40', 'flower17'))
    monkeypatch.setattr(agreement, 'RATES', (0.7,))
    monkeypatch.setattr(agreement, 'list_methods', lambda: ['ToMe'])
    rows = pd.DataFrame(agreement.measure(2))
    assert [*rows.method] == ['none', 'ToMe'] * 2
    assert (rows.agreement[rows.method == 'none'] == 100).all()
    assert (rows.photos == 4).all()
    assert rows.gmacs[1] < rows.gmacs[0]


@pytest.mark.slow
def test_speed_is_measured(monkeypatch):
    monkeypatch.setattr(agreement, 'TIMED', ('ToMe',))
    monkeypatch.setattr(agreement, 'RATES', (0.5,))
    monkeypatch.setattr(agreement, 'BATCHES', (1,))
    rows = pd.DataFrame(agreement.measure_speed(3))
    assert [*rows.method] == ['none', 'ToMe'] and (rows.speed_up > 0).all()
