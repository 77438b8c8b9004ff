# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
from small_models import CACHE, classifier, vit

from mmclca.benchmark import Setting, Size
from mmclca.benchmark.candidates import (
    mmpretrain_vit,
    of_config,
    timm_vit,
    varied,
)
from mmclca.benchmark.profile import PARTS, seconds_of_parts
from mmclca.models import Variant

TINY = Size('tiny', (64, 64), 32, 4, 2, 64)
VIT = mmpretrain_vit(TINY)
PLAIN = (varied(VIT, Variant()), VIT, timm_vit(TINY))
ALL = (
    *PLAIN,
    *(
        varied(VIT, Variant(name, 0.5, cache=True, cla=True))
        for name in ('ATS', 'EViT', 'ToMe')
    ),
)


def seen(one):
    """The parts that take time."""
    seconds = seconds_of_parts(one, Setting(batch=1), rounds=1, warm_up=0)
    assert list(seconds) == list(PARTS)
    assert min(seconds.values()) >= 0
    return {part for part, spent in seconds.items() if spent}


@pytest.mark.parametrize('one', ALL, ids=lambda one: one.label)
def test_parts_of_every_model(one):
    missing = {'cache'} if one.clca == 'no' else set()
    if one.method in ('mmpretrain', 'timm'):
        missing.add('selection')
    assert seen(one) == set(PARTS) - missing


def test_parts_of_a_config_with_branches():
    reducer = dict(type='mmclca.ToMe', keep_rate=0.5)
    more = dict(reducer=reducer, reduce_at=(1, 2), cache=CACHE, branches=2)
    assert seen(of_config('mine', classifier(vit(4, **more)))) == set(PARTS)
