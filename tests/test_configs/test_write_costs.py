# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""tools/dev/write_metafile.py updates the costs in configs."""

import runpy

from tiny_run import ROOT

from mmclca.evaluation.cost import Cost

TOOL = runpy.run_path(str(ROOT / 'tools/dev/write_metafile.py'))
CONFIG = """# One model.
# Cost: {}.
# Command: python tools/train.py
model = dict()  # Cost: 1.00 GMACs, 1.00 M parameters.
"""


def test_cost_line_is_updated_and_keeps_its_words():
    cost = Cost((224, 224), flops=1_234_567_890, params=85_798_656)
    for words in ('', 'at most '):
        old = CONFIG.format(f'{words}0.51 GMACs, 5.53 M parameters')
        new = CONFIG.format(f'{words}1.23 GMACs, 85.80 M parameters')
        assert TOOL['with_cost'](old, cost) == new
        assert TOOL['with_cost'](new, cost) == new
