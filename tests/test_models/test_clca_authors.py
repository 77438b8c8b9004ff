# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parity with the CLCA authors' models, in float64."""

import pytest
import torch
from mmpretrain.structures import DataSample
from parity import CASES, close, config, images, weights

from mmclca.checkpoints.load import load
from mmclca.registry import MODELS

RENAMED = {
    'cls_token': ['cls_token'],
    'pos_embed': ['pos_embed', 'cache.clr_pos'],
    'clr': ['cache.clr'],
    'blocks.0.attn.qkv.weight': ['layers.0.attn.qkv.weight'],
    'blocks.3.attn.qkv.weight': ['layers.3.attn.qkv.weight'],
    'blocks.9.mlp.fc2.weight': ['layers.9.ffn.layers.1.weight'],
    'blocks.11.attn.proj.weight': ['layers.11.attn.proj.weight'],
}


@pytest.mark.parametrize('case', CASES, ids=lambda case: case['name'])
def test_model_equals_authors_model(case):
    model = MODELS.build(config(case)).double()
    load(model, weights(case), strict=False)
    check_logits_and_token_counts(case, model.eval())
    # missing for random or batch-dependent training
    if 'train_loss' in case:
        check_train_loss_and_gradients(case, model.train())


def check_logits_and_token_counts(case, model):
    counts = []
    for layer in model.backbone.layers:
        layer.ffn.register_forward_hook(
            lambda module, inputs, out: counts.append(out.size(1))
        )
    with torch.no_grad():
        logits = model(images(case))
    assert close(logits, case['logits'])  # theirs are of single images
    if case['tokens_out'] is not None:  # the same for all images
        assert counts == case['tokens_out']


def check_train_loss_and_gradients(case, model):
    x = images(case)
    samples = [
        DataSample().set_gt_label(i % case['num_classes'])
        for i in range(len(x))
    ]
    loss = model(x, samples, mode='loss')['loss']
    loss.backward()
    assert close(loss.detach(), case['train_loss'])
    norms = {
        key: _norm(model, case, RENAMED[key])
        for key in case['grad_norm']
        if key in RENAMED
    }
    if case['cla']:
        grad = model.head.layers[1].weight.grad
        norms['ifa_head.0.1.weight'] = grad.norm()
    assert norms.keys() == case['grad_norm'].keys()
    for key, norm in norms.items():
        assert close(norm, case['grad_norm'][key]), key


def _norm(model, case, names):
    """Gradient norm of our parameters for one that they use."""
    params = dict(model.backbone.named_parameters())
    grads = [params[name].grad for name in names if name in params]
    if len(names) > 1 and case['model'].get('no_embed_class'):
        grads = [grads[0][:, 1:]]  # theirs lacks positions for CLS and CLR
    return torch.cat([grad.flatten() for grad in grads]).norm()
