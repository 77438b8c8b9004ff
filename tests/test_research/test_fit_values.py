# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures about fit in README and guides."""

import re

import blocks
import pages
import pandas as pd
import pytest
from study import fit_values
from study.fit_values import CNNS, FitReport
from study.page_values import Report
from study.titles import VITS
from tiny_run import ROOT

NAMES = 'coffee5', 'cotton5'


def make_row(network, classifier='fit', features='all layers', **columns):
    """Return a row with accuracies that differ by network and classifier."""
    size, method = columns.get('img_size', 224), columns.get('method', 'none')
    mean = 70.0 + 5 * (classifier == 'fit') + (network == 'vit_tiny')
    mean += (size - 224) / 32 + (features == 'all layers')
    keys = dict(method=method, keep_rate=1.0, img_size=size, depth=12)
    costs = dict(gmacs=(1.25 if method == 'none' else 0.6) * size**2 / 5e4)
    facts = dict(datasets=2, license='Apache-2.0', mean=mean, ms_1=9.0)
    facts |= dict(zip(NAMES, (mean - 9, mean + 9), strict=True), count=3)
    facts |= dict(network=network, classifier=classifier, features=features)
    return keys | costs | facts | columns


@pytest.fixture
def fit():
    """A report with all rows of candidates and linear classifiers."""
    rows = [make_row(network) for network in CNNS]
    rows += [make_row(x, img_size=size) for x, size in CNNS.items()]
    rows += [make_row(network, 'ridge') for network in CNNS]
    for network in VITS:
        rows += [
            make_row(network, classifier, features)
            for features, classifier in fit_values.CLASSIFIERS
        ]
        rows.append(make_row(network, 'ridge', img_size=160))
        for reduction, size, _ in fit_values.CANDIDATES[network]:
            method = reduction['method'] or 'none'
            keys = dict(method=method, keep_rate=reduction['keep_rate'])
            rows.append(make_row(network, img_size=size, **keys))
    return FitReport(Report(pd.DataFrame(rows)))


def test_budget_selects_the_first_candidate_that_fits(fit):
    row = fit.select('vit_tiny', 0.46)
    assert (row.method, row.img_size) == ('ATC', 192)
    assert fit.select('vit_tiny', 5).equals(fit.find('vit_tiny'))
    assert fit.select('vit_tiny', 0.01) is None
    row = fit.find_default('deit_tiny')
    assert (row.method, row.keep_rate) == ('ATC', 0.5)


def test_comparison_is_paired_by_dataset(fit):
    other = fit.find('vit_tiny', classifier='ridge')
    gain = fit.compare(fit.find('vit_tiny'), other)
    assert gain['low'] == gain['high'] == pytest.approx(5)
    assert gain['title'] == 'ViT-Tiny'
    (loss, _), (gain, _) = fit.find_extremes('vit_tiny')
    assert loss == gain == pytest.approx(6)  # one view of the last layer


def test_missing_rows_of_fit_keep_the_figures(fit, monkeypatch, tmp_path):
    page = tmp_path / 'page.md'
    page.write_text('<!-- figures: results -->kept<!-- end -->')
    table = fit.report.table
    fewer = FitReport(Report(table[table.network != 'mobileone_s0']))
    values = dict(blocks.values(), fit=fewer)
    monkeypatch.setattr(blocks, 'values', lambda: values)
    assert fit.is_complete and not fewer.is_complete
    assert 'kept' in blocks.fill(page, pages.render)


@pytest.mark.parametrize('page', blocks.PAGES)
def test_figures_are_filled_if_all_rows_are_measured(fit, monkeypatch, page):
    values = dict(blocks.values(), fit=fit)
    monkeypatch.setattr(blocks, 'values', lambda: values)
    text = blocks.fill(ROOT / page, pages.render)
    numbers = re.findall(r'7[0-9]\.0', text)
    assert len(numbers) >= 4 and 'nan' not in text
    assert text == blocks.BLOCK.sub(lambda match: match[0], text)


@pytest.mark.parametrize('page', blocks.PAGES)
def test_figures_in_pages_equal_the_tables(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    stored = (ROOT / page).read_text('utf-8')
    assert blocks.fill(page, pages.render) == stored
