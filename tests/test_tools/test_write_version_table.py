# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The table of versions has a row per environment and a cell per check."""

import importlib
import sys
from pathlib import Path

import pytest
import torch
from installed import is_installed

from mmclca.models.reduced.timm_versions import EVA_SINCE
from mmclca.utils.torch_versions import COMPILES, EXPORTS_LOOPS

TOOLS = Path(__file__).parents[2] / 'tools/dev'


@pytest.fixture
def table(monkeypatch, tmp_path):
    """The module of the tool, for a page of its own."""
    monkeypatch.setattr(sys, 'path', [str(TOOLS), *sys.path])
    module = importlib.import_module('write_version_table')
    page = tmp_path / 'page.md'
    page.write_text(f'before\n{module.BEGIN}old\n{module.END}\nafter\n')
    monkeypatch.setattr(module, 'PAGE', page)
    return module


def set_checks(monkeypatch, table, *codes):
    """Replace the checks by short programs."""
    checks = [table.Check(f'c{i}', (('-c', x),)) for i, x in enumerate(codes)]
    monkeypatch.setattr(table, 'CHECKS', checks)


def test_row_tells_versions_and_results(table, monkeypatch):
    needed = "raise SystemExit('ATC needs torch 9.1 or later')"
    set_checks(monkeypatch, table, 'pass', needed, 'raise SystemExit(1)')
    table.main([sys.executable])
    before, _, titles, _, row, *after = table.PAGE.read_text().splitlines()
    assert (before, after) == ('before', [table.END, 'after'])
    assert titles.endswith('| c0 | c1 | c2 |')
    assert torch.__version__.partition('+')[0] in row
    assert row.endswith('| yes | needs torch 9.1 | no |')


@pytest.mark.slow
def test_all_checks_pass_in_this_environment(table):
    pytest.importorskip('onnxscript', reason='pip install "mmclca[deploy]"')
    row = table.describe_environment(sys.executable)
    configs, *commands, evit, atc = row[5:]
    assert commands == ['yes'] * (len(table.CHECKS) - 3)
    assert configs == expected_cell('timm', EVA_SINCE)
    assert evit == expected_cell('torch', COMPILES)
    # without any export, it is refused for that
    exports = is_installed('torch', COMPILES)
    assert atc == (expected_cell('torch', EXPORTS_LOOPS) if exports else evit)


def expected_cell(package, oldest):
    """Return the cell of a check that needs a version."""
    new = is_installed(package, oldest)
    return 'yes' if new else f'needs {package} {oldest}'
