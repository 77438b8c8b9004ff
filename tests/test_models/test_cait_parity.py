# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parity with the public code of CaiT, in float64."""

import pytest
import torch
import torch.nn.functional as F
from family_parity import (
    cait,
    cases,
    check_gradients,
    classifier,
    close,
    sums,
    targets,
)
from parity import images


@pytest.fixture(params=cases('cait'), ids=lambda case: case['name'])
def case(request):
    return request.param


@pytest.fixture
def model(case, tmp_path):
    return classifier(case, cait(case), 'LinearClsHead', tmp_path)


@torch.no_grad()
def test_scores_and_what_leaves_the_layers(case, model):
    backbone, x = model.eval().backbone, images(case)
    assert close(model(x), case['expect']['logits'])
    ours = dict(patch_embed=backbone.patch_embed(x)[0])
    tokens, _ = backbone.embed(x)
    for i, layer in enumerate(backbone.layers):
        tokens = backbone.run_layer(layer, tokens, None)
        ours[f'blocks.{i}'] = tokens.x
    cls = backbone.cls_of(tokens)
    for i, layer in enumerate(backbone.class_layers):
        cls = layer(cls, tokens.x)
        ours[f'blocks_token_only.{i}'] = cls
    for name, *theirs in case['expect']['trace']:
        assert close(sums(ours[name]), theirs), name


@torch.no_grad()
def test_what_cls_reads(case, model):
    maps = model.eval().backbone.class_attention(images(case))
    ours = [[sums(image) for image in layer] for layer in maps]
    assert close(ours, case['expect']['attention_sums'])
    for layer, theirs in zip(
        maps, case['expect']['attention_first'], strict=True
    ):
        assert close(layer[0, : len(theirs), 0], theirs)


def test_training(case, model):
    loss = F.cross_entropy(model.train()(images(case)), targets(case))
    loss.backward()
    assert close(loss.detach(), case['expect']['train_loss'])
    check_gradients(case, model)
