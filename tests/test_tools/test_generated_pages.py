# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Generated tables in docs/tools.md and docs/weights.md, and cost lines."""

import re
import runpy

import pytest
from mmengine.registry import init_default_scope
from tiny_run import ROOT

from mmclca.evaluation.cost import Cost
from mmclca.utils.markdown import format_row

REFERENCE, ZOO, METAFILE = (
    runpy.run_path(str(ROOT / f'tools/dev/write_{name}.py'))
    for name in ('command_reference', 'model_zoo', 'metafile')
)
CLCA, OTHER = ZOO['PAGE'].read_text().split('## Other architectures')


def test_command_reference_is_up_to_date():
    page = REFERENCE['PAGE'].read_text(encoding='utf-8')
    tables = page.partition(REFERENCE['BEGIN'])[2]
    tables = tables.partition(REFERENCE['END'])[0].splitlines()
    advice = 'run: python tools/dev/write_command_reference.py'
    assert tables == [*REFERENCE['tables'](), ''], advice


def test_every_base_config_has_a_row():
    for text, names in ((CLCA, ZOO['BACKBONES']), (OTHER, ZOO['others']())):
        rows = re.findall(r'^\| `([\w-]+)` \| [\d.]+ \|', text, re.M)
        assert rows == list(names)


@pytest.mark.parametrize(
    'row, name, text',
    [
        ('backbone_row', 'deit-tiny-p16', CLCA),
        ('other_row', 'patchconvnet-s20', OTHER),
    ],
)
def test_model_row_is_counted(row, name, text):
    init_default_scope('mmpretrain')
    assert format_row(ZOO[row](name)) in text


@pytest.mark.parametrize('words', ['', 'at most '])
def test_cost_line_is_updated_and_keeps_its_words(words):
    cost = Cost((224, 224), flops=1_234_567_890, params=85_798_656)
    text = '# A model.\n# Cost: {}.\nx = 1  # Cost: 1.00 GMACs, 1.00 M\n'
    old = text.format(f'{words}0.51 GMACs, 5.53 M parameters')
    new = text.format(f'{words}1.23 GMACs, 85.80 M parameters')
    assert METAFILE['with_cost'](old, cost) == new
