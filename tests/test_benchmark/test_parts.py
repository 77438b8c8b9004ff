# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from small_models import CACHE, classifier, vit

from mmclca.benchmark import Setting, Size
from mmclca.benchmark.candidates import (
    METHODS,
    mmpretrain_vit,
    of_config,
    plain_vit,
    reduced_vit,
    timm_vit,
)
from mmclca.benchmark.parts import (
    PARTS,
    PartTimer,
    seconds_of_parts,
    timed_parts,
)
from mmclca.benchmark.steps import build

TINY = Size('tiny', (64, 64), 32, 4, 2, 64)
DEEP = Size('deep', (224, 224), 96, 6, 3, 384)
EVIT = reduced_vit(TINY, 'EViT', 0.5, clca=True)
PLAIN = (plain_vit(TINY), mmpretrain_vit(TINY), timm_vit(TINY))
ALL = (*PLAIN, *(reduced_vit(TINY, name, 0.5, True) for name in METHODS))


class Steps:
    """A clock that ticks once a mark."""

    def __init__(self):
        self.now = 0

    def mark(self):
        self.now += 1
        return self.now

    def wait(self):
        pass

    def seconds(self, start, end):
        return end - start


def test_of_parts_within_each_other_the_inner_one_counts():
    timer = PartTimer(Steps())
    inner = timer.timed('norm', lambda: 3)
    outer = timer.timed('FFN', lambda: 1 + inner())
    timer.mark()  # 1
    assert outer() == 4  # FFN 2 to 3, norm to 4, FFN to 5
    timer.mark()  # 6
    assert timer.seconds() == dict(other=2, FFN=2, norm=1)


@pytest.mark.parametrize('one', ALL, ids=lambda one: one.label)
def test_model_is_as_it_was(one):
    model = build(one, 'cpu').eval()
    x = torch.randn(2, 3, 64, 64)
    timer = PartTimer(Steps())
    with torch.no_grad():
        before = model(x)
        with timed_parts(model, timer):
            assert torch.equal(model(x), before)
        count = len(timer.marks)
        assert torch.equal(model(x), before)
    assert len(timer.marks) == count
    assert timer.running == ['other']
    assert 'forward' not in vars(model.modules().__next__())


def seen(one):
    """How often each part begins."""
    model = build(one, 'cpu').eval()
    timer = PartTimer(Steps())
    begun = []
    begin = timer.begin

    def noted(part):
        begun.append(part)
        begin(part)

    timer.begin = noted
    with torch.no_grad(), timed_parts(model, timer):
        model(torch.zeros(1, 3, *one.size.img_size))
    return {part: begun.count(part) for part in set(begun)}


@pytest.mark.parametrize('one', PLAIN, ids=lambda one: one.method)
def test_parts_of_plain_models(one):
    parts = seen(one)
    parts.pop('selection', None)  # hooks that do nothing
    assert parts == dict(
        embedding=1, norm=9, projections=8, attention=4, FFN=4, head=1
    )


def test_parts_of_a_model_that_reduces():
    # start and four layers; softmax and key_bias in all, before and between
    # in three
    parts = seen(EVIT)
    assert (parts['cache'], parts['selection']) == (5, 14)
    assert parts['norm'] == 8  # CLA: no final one
    assert set(parts) == set(PARTS) - {'other'}


def test_parts_of_a_config():
    reducer = dict(type='mmclca.ToMe', keep_rate=0.5)
    backbone = vit(4, reducer=reducer, reduce_at=(1, 2), cache=CACHE)
    assert seen(of_config('mine', classifier(backbone)))['norm'] == 9


@pytest.mark.alone
@pytest.mark.parametrize('make', [plain_vit, timm_vit])
def test_parts_sum_up_to_the_whole(make):
    setting = Setting(batch=2)
    for _ in range(4):  # the machine may be busy with something else
        parts, whole = seconds_of_parts(make(DEEP), setting, 9, warm_up=2)
        if sum(parts.values()) == pytest.approx(whole, rel=0.1):
            break
    else:
        pytest.fail(f'{sum(parts.values())} s in parts, {whole} s in all')
    assert list(parts) == list(PARTS)
    # FFN has twice the products of the projections
    assert parts['FFN'] > parts['projections'] > parts['norm'] > 0
    assert parts['attention'] > parts['head']
