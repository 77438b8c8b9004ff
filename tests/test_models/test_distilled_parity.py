# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parity with the public code of the distilled DeiT, in float64."""

import pytest
import torch
import torch.nn.functional as F
from family_parity import (
    cases,
    check_gradients,
    check_trace,
    classifier,
    close,
    targets,
    vit,
)
from parity import images, normal


@pytest.fixture(params=cases('deit_distilled'), ids=lambda case: case['name'])
def case(request):
    return request.param


@pytest.fixture
def model(case, tmp_path):
    backbone = vit(case, dist_token=True)
    return classifier(case, backbone, 'mmclca.DistilledHead', tmp_path)


@pytest.mark.parametrize(
    ('fusion', 'name'),
    [
        ('logits', 'logits'),
        ('softmax', 'mean_of_softmax'),
        ('cls', 'logits_cls'),
        ('dist', 'logits_dist'),
    ],
)
def test_scores(case, model, fusion, name):
    model.head.fusion = fusion
    with torch.no_grad():
        scores = model.eval()(images(case))
    scores = scores.exp() if fusion == 'softmax' else scores
    assert close(scores, case['expect'][name])


def test_training_and_what_leaves_the_layers(case, model):
    loss = distillation_loss(case, *model.train()(images(case)))
    loss.backward()
    assert close(loss.detach(), case['expect']['train_loss'])
    check_gradients(case, model)
    check_trace(case, model.eval())


def distillation_loss(case, cls, dist):
    """Of equations 3.2 and 3.3, with the teacher's drawn scores."""
    teacher = 2 * normal(case['seed'], 'teacher_logits', dist.shape).double()
    alpha, tau = case['alpha'], case['tau']
    loss = F.cross_entropy(cls, targets(case))
    if case['distill'] == 'none':
        return loss
    if case['distill'] == 'hard':
        term = F.cross_entropy(dist, teacher.argmax(dim=1))
    else:  # a mean over images and classes
        ours, theirs = (F.log_softmax(x / tau, 1) for x in (dist, teacher))
        divergence = F.kl_div(ours, theirs, reduction='sum', log_target=True)
        term = tau**2 * divergence / dist.numel()
    return (1 - alpha) * loss + alpha * term
