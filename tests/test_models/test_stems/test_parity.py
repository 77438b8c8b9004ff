# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parity of the hMLP stem with the public code, in float64."""

import pytest
import torch
from family_parity import STEMS, cases, check_gradients, sums, weights
from parity import close, images

from mmclca.registry import MODELS

RELEASED, OURS = 'patch_embed.proj.', 'projection.'


@pytest.fixture(params=cases('hmlp_stem'), ids=lambda case: case['name'])
def case(request):
    return request.param


@pytest.fixture
def stem(case):
    sizes = dict(embed_dims=case['embed_dim'], img_size=case['img_size'])
    stem = MODELS.build(dict(STEMS[case['stem']], **sizes)).double()
    state = {k.replace(RELEASED, OURS): v for k, v in weights(case).items()}
    stem.load_state_dict(state)
    return stem


def test_tokens_equal_public_code(case, stem):
    tokens, _ = stem.eval()(images(case))
    assert close(sums(tokens), case['expect']['tokens'])
    assert close(tokens[0, 0].detach(), case['expect']['first_token'])


def test_training_step_equals_public_code(case, stem):
    expect = case['expect']
    tokens, _ = stem(images(case))
    assert close(sums(tokens), expect['tokens_train'])
    squares = tokens.square().flatten()
    ramp = torch.arange(1, len(squares) + 1).to(squares) / len(squares)
    value = (squares * ramp).mean()
    assert close(value.detach(), expect['train_value'])
    value.backward()
    check_gradients(stem, expect['grad_norm'], 'backbone.patch_embed.')
    buffers = dict(stem.named_buffers())
    for key, theirs in expect.get('running_after', {}).items():
        assert close(sums(buffers[key.replace(RELEASED, OURS)]), theirs), key
