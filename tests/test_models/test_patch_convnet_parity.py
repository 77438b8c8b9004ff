# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parity with the public code of PatchConvNet, in float64."""

import re

import pytest
import torch
import torch.nn.functional as F
from family_parity import (
    cases,
    check_gradients,
    classifier,
    close,
    patch_convnet,
    sums,
    targets,
    weights,
)
from parity import images

CASES = {case['name']: case for case in cases('patchconvnet')}
OF_CLASS = re.compile(r'head\.(\d+)\.(weight|bias)')


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture
def model(case, tmp_path):
    """Loaded from a file in the layout of the release."""
    head = 'mmclca.PerClassHead' if case['multiclass'] else 'LinearClsHead'
    backbone = patch_convnet(case)
    return classifier(case, backbone, head, tmp_path, 'ImageClassifier')


@torch.no_grad()
def test_scores_and_what_leaves_the_layers(case, model):
    backbone, outs = model.eval().backbone, {}
    named = {f'blocks.{i}': layer for i, layer in enumerate(backbone.layers)}
    named['blocks_token_only.0'] = backbone.pool.layer
    for name, layer in named.items():
        layer.register_forward_hook(
            lambda _, __, out, name=name: outs.update({name: out})
        )
    assert close(model(images(case)), case['expect']['logits'])
    outs['patch_embed'] = backbone.patch_embed(images(case))[0]
    for name, *theirs in case['expect']['trace']:
        out = outs[name]
        ours = out.flatten(2).mT if out.dim() == 4 else out
        assert close(sums(ours), theirs), name


@torch.no_grad()
def test_attention(case, model):
    """Of each image and head the row of a query, and all of a class."""
    (found,) = model.eval().backbone.class_attention(images(case))
    expect = case['expect']
    for image, theirs in zip(found, expect['attention_sums'][0], strict=True):
        assert close(sums(image), theirs)
    if case['multiclass']:  # of the first image
        assert close(found[0, 0], expect['attention_first'])
    else:
        assert close(found[:, :, 0], expect['attention'])


def test_training(case, model):
    expect = case['expect']
    loss = F.cross_entropy(model.train()(images(case)), targets(case))
    loss.backward()
    assert close(loss.detach(), expect['train_loss'])
    norms = by_class(model.head, dict(expect['grad_norm']))
    check_gradients(dict(case, expect=dict(grad_norm=norms)), model)


def by_class(head, norms):
    """Compare the gradients of a head a class; leaves that of all in one."""
    found = {'weight': 0, 'bias': 0}
    for key in list(filter(OF_CLASS.match, norms)):
        label, name = OF_CLASS.match(key).groups()
        grad = head.get_parameter(name).grad[int(label)]
        norm = norms.pop(key)
        assert close(grad.norm(), norm), key
        found[name] += norm**2
    joined = {f'per_class.{name}': sq**0.5 for name, sq in found.items() if sq}
    return norms | joined


def test_the_release_with_one_query_starts_one_a_class(tmp_path):
    case = CASES['pcn_base']
    backbone = dict(patch_convnet(case), multiclass=10)
    head = 'mmclca.PerClassHead'
    model = classifier(case, backbone, head, tmp_path, 'ImageClassifier')
    theirs = weights(case)
    queries = model.backbone.pool.cls_token.float()
    assert torch.equal(queries, theirs['cls_token'].expand(1, 10, -1))
    assert torch.equal(model.head.weight.float(), theirs['head.weight'])


def test_all_layouts_are_there():
    """One query and one a class, one head and several, an odd side."""
    found = {
        (case['multiclass'], case['num_heads']) for case in CASES.values()
    }
    assert found == {(False, 1), (True, 1), (False, 4)}
    assert any(case['img_size'] % 16 for case in CASES.values())
