# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parity with the public code of the ViT family, in float64.

Distilled DeiT, DeiT III with parallel branches and the hMLP stem, CaiT, ResMLP
and PatchConvNet, each loaded from a file with the release's layout.
"""

import re

import pytest
import torch
import torch.nn.functional as F
from family_parity import (
    BACKBONES,
    cases,
    check_gradients,
    classifier,
    outputs,
    sums,
    targets,
    weights,
)
from parity import close, images, normal

from mmclca.checkpoints.rename import rename_to_classifier
from mmclca.models.distillation import deit_distillation

CASES = [case for system in BACKBONES for case in cases(system)]
OF_CLASS = re.compile(r'head\.(\d+)\.(weight|bias)')


@pytest.mark.parametrize('case', CASES, ids=lambda case: case['name'])
def test_model_equals_public_code(case, tmp_path):
    model = classifier(case, tmp_path).eval()
    check_scores_and_layer_outputs(case, model)
    if case['system'] == 'deit_distilled':
        check_distilled_scores(case, model)
    if 'attention_sums' in case['expect']:
        check_class_attention(case, model)
    check_training_step(case, model.train())


def check_scores_and_layer_outputs(case, model):
    scores, ours = outputs(model, images(case))
    assert close(scores, case['expect']['logits'])
    for name, *theirs in case['expect']['trace']:
        assert close(sums(ours[name]), theirs), name


@torch.no_grad()
def check_distilled_scores(case, model):
    expect = case['expect']
    names = dict(softmax='mean_of_softmax', cls='logits_cls')
    names['dist'] = 'logits_dist'
    for model.head.output, name in names.items():
        scores = model(images(case))
        scores = scores.exp() if name == 'mean_of_softmax' else scores
        assert close(scores, expect[name])


@torch.no_grad()
def check_class_attention(case, model):
    expect = case['expect']
    maps = model.backbone.class_attention(images(case))
    ours = [[sums(image) for image in layer] for layer in maps]
    assert close(ours, expect['attention_sums'])
    if case['system'] == 'cait':
        for layer, theirs in zip(maps, expect['attention_first'], strict=True):
            assert close(layer[0, : len(theirs), 0], theirs)
    elif case['multiclass']:
        assert close(maps[0][0, 0], expect['attention_first'])
    else:
        assert close(maps[0][:, :, 0], expect['attention'])


def check_training_step(case, model):
    expect = case['expect']
    out = model(images(case))
    if case['system'] == 'deit_distilled':
        loss = distillation_loss(case, *out)
    else:
        loss = F.cross_entropy(out, targets(case))
    loss.backward()
    assert close(loss.detach(), expect['train_loss'])
    check_gradients(model, by_class(model.head, expect['grad_norm']))
    running = dict(expect.get('running_after', {}))
    rename_to_classifier(running, '')
    buffers = dict(model.named_buffers())
    for name, expected in running.items():
        assert close(sums(buffers[name]), expected), name


def distillation_loss(case, cls, dist):
    """Equations 3.2 and 3.3, with random teacher scores."""
    teacher = 2 * normal(case['seed'], 'teacher_logits', dist.shape).double()
    base = F.cross_entropy(cls, targets(case))
    how = case['distill'], case['alpha'], case['tau']
    return deit_distillation(cls, dist, teacher, base, *how)


def by_class(head, norms):
    """Compare gradients per class; return norms for the joined head."""
    norms, found = dict(norms), {'weight': 0, 'bias': 0}
    for key in list(filter(OF_CLASS.match, norms)):
        label, name = OF_CLASS.match(key).groups()
        grad = head.get_parameter(name).grad[int(label)]
        norm = norms.pop(key)
        assert close(grad.norm(), norm), key
        found[name] += norm**2
    joined = {f'per_class.{name}': sq**0.5 for name, sq in found.items() if sq}
    return norms | joined


def test_release_with_one_query_loads_into_one_per_class(tmp_path):
    (case,) = (case for case in CASES if case['name'] == 'pcn_base')
    model = classifier(dict(case, multiclass=True), tmp_path)
    theirs = weights(case)
    queries = model.backbone.pool.cls_token.float()
    assert torch.equal(queries, theirs['cls_token'].expand(1, 10, -1))
    assert torch.equal(model.head.weight.float(), theirs['head.weight'])
