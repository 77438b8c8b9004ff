# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Model tables in docs/weights.md."""

import re
import runpy

import pytest
from mmengine.registry import init_default_scope
from tiny_run import ROOT

from mmclca.benchmark.pages import line

TOOL = runpy.run_path(str(ROOT / 'tools/dev/write_model_zoo.py'))
PAGE = (ROOT / 'docs/weights.md').read_text()
CLCA, OTHER = PAGE.split('## Other architectures')


@pytest.fixture(autouse=True)
def scope():
    init_default_scope('mmpretrain')


def test_every_base_config_has_a_row():
    for text, names in ((CLCA, TOOL['BACKBONES']), (OTHER, TOOL['others']())):
        rows = re.findall(r'^\| `([\w-]+)` \| [\d.]+ \|', text, re.M)
        assert rows == list(names)


@pytest.mark.parametrize('name', ['deit-tiny-p16', 'dinov2-reg-small-p14'])
def test_backbone_row_is_counted(name):
    assert line(TOOL['backbone_row'](name)) in CLCA


@pytest.mark.parametrize('name', ['cait-xxs24-p16', 'patchconvnet-s20'])
def test_row_of_other_architecture_is_counted(name):
    assert line(TOOL['other_row'](name)) in OTHER
