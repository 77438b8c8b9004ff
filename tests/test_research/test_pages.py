# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pages and figures from stored results."""

import pytest
import tables
from tiny_run import ROOT, run_tool

TOOLS = ROOT / 'tools/research'
PAGES = [
    'few_photos',
    'fine_tuning',
    'fresh_datasets',
    'schedules',
    'alternatives',
    'baselines',
    'classifier_choice',
    'from_scratch',
    'leaf40',
    'paper',
    'training',
]
FIGURES = ('accuracy_gmacs', 'methods', 'gradients', 'gradients_by_part')


@pytest.mark.parametrize('page', [*PAGES, 'pretraining'])
def test_rendered_page_equals_stored_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    run_tool(monkeypatch, TOOLS / 'pages.py', page, '--out', tmp_path)
    folder = 'paper' if page == 'paper' else 'docs/results'
    file = f'{folder}/{page}.md'
    assert (tmp_path / file).read_text() == (ROOT / file).read_text()


@pytest.mark.slow
def test_figures_are_written_as_pdf_and_png(tmp_path, monkeypatch):
    stored = tables.read_sweep(ROOT / 'docs/results/leaf40_why.csv')
    few = [
        x
        for x in stored
        if x['run']['variant'] in ('by-layer', 'lr3e-4')
        and x['run']['seed'] == 1
        and 'deit' in x['run']['backbone']
    ]
    tables.write_sweep(few, tmp_path / 'few.csv')
    out = tmp_path / 'figures'
    chosen = tmp_path / 'few.csv', '--variant', 'by-layer', '--out', out
    run_tool(monkeypatch, TOOLS / 'plot_sweep.py', *chosen)
    ends = ('.pdf', '.png')
    assert set(out.iterdir()) == {
        out / f'{n}{e}' for n in FIGURES for e in ends
    }
    assert all(file.stat().st_size > 5000 for file in out.iterdir())
