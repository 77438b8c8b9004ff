# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Trained arms of a sweep beside probe arms: tables, a picture, a page."""

from .changes import table_of_changes, to_changes
from .compare import Difference, Verdict, difference, judge, to_arms
from .page import Page, compared, write_page
from .picture import draw_arms
from .runs import read_probes, to_runs

__all__ = [
    'Difference',
    'Page',
    'Verdict',
    'compared',
    'difference',
    'draw_arms',
    'judge',
    'read_probes',
    'table_of_changes',
    'to_arms',
    'to_changes',
    'to_runs',
    'write_page',
]
