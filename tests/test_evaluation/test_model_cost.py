# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""``mmclca.cost`` for models of any kind."""

import pytest
import timm
from mmengine.config import Config
from small_timm import small_timm
from test_cost import tiny
from timm.models.vision_transformer import VisionTransformer
from tiny_run import ROOT
from torch import nn

import mmclca
from mmclca.evaluation.cost import count, count_config
from mmclca.models import list_methods
from mmclca.registry import MODELS
from mmclca.utils.meta_device import on_meta_device

CONFIG = ROOT / 'configs/_base_/models/clca-evit_deit-tiny-p16.py'


def test_cost_of_timm_model_equals_cost_without_reduction():
    model = small_timm()
    model.blocks[0].train()
    cost = mmclca.cost(model)
    assert cost == count(mmclca.reduce_tokens(model, None))
    assert cost.tokens == 4 * [17] and cost.gmacs == cost.flops / 1e9
    assert model.blocks[0].training and not model.training


def test_cost_has_no_tokens_if_a_class_overrides_the_forward_pass():
    class Doubled(VisionTransformer):
        def forward(self, x):
            return 2 * super().forward(x)

    model = small_timm()
    plain = mmclca.cost(model)
    model.__class__ = Doubled
    cost = mmclca.cost(model, (32, 32))
    assert cost.tokens == [] and cost.gmacs == pytest.approx(plain.gmacs)


@pytest.mark.parametrize('method', ['MCTF', 'ToMe'])
def test_cost_of_reduced_model_falls_with_its_tokens(method):
    model = small_timm()
    reduced = mmclca.reduce_tokens(model, method, 0.5, layers=(1, 2))
    cost = mmclca.cost(reduced)
    assert cost.tokens == [17, 9, 5, 5]
    assert cost.gmacs < mmclca.cost(model).gmacs
    assert '17/9/5/5' in str(cost)


@pytest.mark.slow
@pytest.mark.parametrize('method', list_methods())
def test_cost_is_counted_for_every_method(method):
    reduced = mmclca.reduce_tokens(small_timm(), method, 0.5, layers=(1, 2))
    assert len(mmclca.cost(reduced).tokens) == 4


@pytest.mark.slow
def test_cost_of_config_is_that_of_its_model():
    model = tiny()
    cost = count_config(model)
    assert mmclca.cost(model) == mmclca.cost(dict(model=model)) == cost
    with on_meta_device():
        assert mmclca.cost(MODELS.build(model)) == cost


@pytest.mark.slow
def test_cost_of_config_file():
    model = Config.fromfile(CONFIG).model
    assert mmclca.cost(CONFIG) == count_config(model)


@pytest.mark.slow
def test_cost_of_other_network_has_no_tokens():
    with on_meta_device():
        model = timm.create_model('resnet18')
    cost = mmclca.cost(model)
    assert cost.shape == (224, 224) and 1.8 < cost.gmacs < 1.85
    assert cost.tokens == [] and 'tokens' not in str(cost)
    assert mmclca.cost(nn.Conv2d(3, 2, 1), (4, 4)).flops == 3 * 2 * 16
    with pytest.raises(ValueError, match='shape'):
        mmclca.cost(nn.Conv2d(3, 2, 1))
    with pytest.raises(ValueError, match='module or a config'):
        mmclca.cost(3)
