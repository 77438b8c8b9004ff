# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures in README and guides: text between two comments, from the tables.

A block starts with ``<!-- figures: NAME -->`` and ends with ``<!-- end -->``.
The template ``blocks/NAME.j2`` is its text.
"""

import re
from pathlib import Path

import alternatives
import fresh_datasets
from study import fit_values
from study.page_values import Report

BLOCK = re.compile(
    r'(<!-- figures: (\S+) -->\s*)(.*?)(\s*<!-- end -->)', re.DOTALL
)
TEMPLATES = Path(__file__).with_name('blocks')
PAGES = (
    'README.md',
    'README_zh-CN.md',
    'docs/choose_weights.md',
    'docs/results.md',
)
MEASURED = 'alternatives', 'fresh', 'fresh_zh'  # need no row of the study


def values():
    """Return the values for all blocks."""
    return dict(
        fit_values.values(Report.read()),
        libraries=alternatives.values()['summaries'],
        fresh=fresh_datasets.values(),
    )


def fill(page, render):
    """Return a page with its blocks filled by ``render(template, values)``.

    Blocks about ``fit`` are kept until all its rows are measured.
    """
    shared = values()

    def replace(match):
        start, name, content, end = match.groups()
        if name in MEASURED or shared['fit'].is_complete:
            content = render(TEMPLATES / f'{name}.j2', shared).strip()
        return f'{start}{content}{end}'

    return BLOCK.sub(replace, Path(page).read_text('utf-8'))
