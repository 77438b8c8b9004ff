# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tables in docs/tools.md."""

import runpy

from tiny_run import ROOT

TOOL = runpy.run_path(str(ROOT / 'tools/dev/write_command_reference.py'))


def test_page_has_the_current_tables():
    page = TOOL['PAGE'].read_text(encoding='utf-8')
    tables = page.partition(TOOL['BEGIN'])[2].partition(TOOL['END'])[0]
    advice = 'run: python tools/dev/write_command_reference.py'
    assert tables.splitlines() == [*TOOL['tables'](), ''], advice


def test_purpose_is_the_first_sentence():
    text = 'usage: x\n\nDraw a map, 1.5 px wide: one row per image. More\n'
    assert TOOL['purpose']('x', text) == 'Draw a map, 1.5 px wide'


def test_options_keep_their_order():
    text = (
        '  -h, --help  show\n  -p N, --pairs N  see --x\n  --a-b C\n      d\n'
    )
    assert TOOL['options'](text) == ['--help', '--pairs', '--a-b']
