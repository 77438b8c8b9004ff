# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parity with the public code of DeiT III and Three things, in float64.

Also of parallel branches and the hMLP stem, from files in their layout.
"""

import pytest
import torch
import torch.nn.functional as F
from family_parity import (
    cases,
    check_gradients,
    check_trace,
    classifier,
    close,
    deit3,
    sums,
    targets,
)
from parity import images

from mmclca.checkpoints.renames import rename_to_classifier


@pytest.fixture(params=cases('deit3'), ids=lambda case: case['name'])
def case(request):
    return request.param


@pytest.fixture
def model(case, tmp_path):
    head = 'VisionTransformerClsHead'
    return classifier(case, deit3(case), head, tmp_path)


def test_scores_and_what_leaves_the_layers(case, model):
    with torch.no_grad():
        scores = model.eval()(images(case))
    assert close(scores, case['expect']['logits'])
    check_trace(case, model)


def test_training(case, model):
    """Loss, gradients, and the running statistics of a BatchNorm."""
    loss = F.cross_entropy(model.train()(images(case)), targets(case))
    loss.backward()
    assert close(loss.detach(), case['expect']['train_loss'])
    check_gradients(case, model)
    running = dict(case['expect'].get('running_after', {}))
    rename_to_classifier(running, '')
    buffers = dict(model.named_buffers())
    for name, expected in running.items():
        assert close(sums(buffers[name]), expected), name


def test_all_layouts_are_there():
    """One to three branches, with both stems."""
    found = {(case['branches'], case['stem']) for case in cases('deit3')}
    assert found >= {(2, 'patch'), (3, 'patch'), (1, 'hmlp_bn')}
    assert (1, 'hmlp_ln') in found
