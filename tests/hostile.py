# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Attacks in many seeded tries, and the table of tries that held."""

import os
from random import Random

import pytest

SEED = int(os.environ.get('MMCLCA_SEED', '0'))


def few_and_many(few: int, many: int):
    """Parametrize ``tries``: few in the quick tests, many in hostile ones."""
    hostile = pytest.param(many, marks=pytest.mark.hostile, id='many')
    return pytest.mark.parametrize(
        'tries', [pytest.param(few, id='few'), hostile]
    )


class Attack:
    """Count an attack's tries for the table at the end of the tests."""

    def __init__(self, record_property):
        self._record_property = record_property

    def run(self, name: str, tries: int, attempt) -> None:
        """Call ``attempt(random)`` with seeded generators.

        A try fails by an ``AssertionError``. Fails with the seeds of all
        failed tries after the last one.
        """
        failed = {}
        for seed in range(SEED, SEED + tries):
            try:
                attempt(Random(seed))
            except AssertionError as error:
                failed[seed] = str(error)
        self.record(name, tries, tries - len(failed))
        lines = [f'seed {seed}: {text}' for seed, text in failed.items()]
        assert not failed, '\n'.join(lines)

    def record(self, name: str, tries: int, held: int) -> None:
        """Add a row to the table."""
        self._record_property('attack', [name, tries, held])


def write_table(reporter) -> None:
    """Write a table of all attacks to the terminal."""
    rows = [
        value
        for reports in reporter.stats.values()
        for report in reports
        for name, value in getattr(report, 'user_properties', ())
        if name == 'attack' and report.when == 'call'
    ]
    if rows:
        reporter.section(f'attacks, seed {SEED} (MMCLCA_SEED)')
        reporter.write_line(f'{"attack":52} {"tries":>6} {"held":>6}')
    for name, tries, held in sorted(rows):
        reporter.write_line(f'{name:52} {tries:6} {held:6}')
