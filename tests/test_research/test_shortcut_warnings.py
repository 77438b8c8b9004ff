# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Planted shortcuts are found, random ones are not."""

import pytest
import shortcut_warnings


@pytest.mark.parametrize('kind', shortcut_warnings.KINDS)
def test_planted_shortcut_is_found_in_synthetic_leaves(kind, monkeypatch):
    monkeypatch.setattr(shortcut_warnings, 'SIDE', 96)
    monkeypatch.setattr(shortcut_warnings, 'BORDER', 9)
    source = shortcut_warnings.SOURCES[0]
    assert shortcut_warnings.run_once(source, kind, True, 0)['warned']
    assert not shortcut_warnings.run_once(source, kind, False, 0)['warned']
