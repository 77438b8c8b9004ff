# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parity with the public code of ResMLP, in float64."""

import pytest
import torch
import torch.nn.functional as F
from family_parity import (
    cases,
    check_gradients,
    check_outputs,
    classifier,
    close,
    resmlp,
    targets,
)
from parity import images


@pytest.fixture(params=cases('resmlp'), ids=lambda case: case['name'])
def case(request):
    return request.param


@pytest.fixture
def model(case, tmp_path):
    kinds = dict(head='LinearClsHead', kind='ImageClassifier')
    return classifier(case, resmlp(case), folder=tmp_path, **kinds)


def test_scores_and_what_leaves_the_layers(case, model):
    with torch.no_grad():
        scores = model.eval()(images(case))
    assert close(scores, case['expect']['logits'])
    backbone = model.backbone
    layers = {f'blocks.{i}': one for i, one in enumerate(backbone.layers)}
    first_and_last = dict(patch_embed=backbone.patch_embed, norm=backbone.norm)
    check_outputs(case, model, layers | first_and_last)


def test_training(case, model):
    loss = F.cross_entropy(model.train()(images(case)), targets(case))
    loss.backward()
    assert close(loss.detach(), case['expect']['train_loss'])
    check_gradients(case, model)
