# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Speed of reduced models with rotary positions."""

import pytest
import rotary_speed
from installed import needs

pytestmark = needs('timm', '1.0.31')


@pytest.mark.slow
def test_each_method_has_a_row_per_size(monkeypatch, capsys):
    monkeypatch.setattr(rotary_speed, 'SIZES', [(32, 1)])
    network = 'vit_small_patch16_dinov3'
    words = 'rotary_speed.py', '--rounds', '1', '--networks', network
    monkeypatch.setattr('sys.argv', [*words])
    rotary_speed.main()
    titles, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[2] for row in rows] == [*rotary_speed.METHODS]
    assert all(float(row.split()[3]) > 0 for row in rows)
    assert titles.split()[-1] == 'network'
