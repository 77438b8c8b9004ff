# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Reduced models of timm in training loops, costs, pictures and exports."""

from copy import deepcopy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from installed import NEEDS_COMPILER
from small_timm import photos, small_timm
from small_transformers import small_images, small_transformer
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3

import mmclca
from mmclca.datasets.batches import View
from mmclca.evaluation.cost import MacCounter, count
from mmclca.visualization import (
    class_activation_maps,
    find_kept_patches,
    rollout,
)


def test_plain_loop_fits_images():
    torch.manual_seed(0)
    model = small_timm(depth=2)
    reduced = mmclca.reduce_tokens(model, 'DynamicViT', 0.7).train()
    optimizer = torch.optim.AdamW(reduced.parameters(), lr=1e-2)
    images, labels = photos(model, batch=5), torch.arange(5)
    for _ in range(40):
        loss = F.cross_entropy(reduced(images), labels)
        (loss + reduced.auxiliary_loss()).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert reduced.eval()(images).argmax(dim=1).equal(labels)


def scales(model):
    """Return the learning-rate scale of each parameter, and its decay."""
    groups = create_optimizer_v2(
        model, 'adamw', lr=1.0, weight_decay=0.1, layer_decay=0.5
    ).param_groups
    of = {
        p: (x['lr_scale'], x['weight_decay'])
        for x in groups
        for p in x['params']
    }
    return {name: of[p] for name, p in model.named_parameters()}


@pytest.mark.parametrize('kind', ['distilled', 'registers'])
def test_training_as_in_timm(kind):
    model = small_timm(kind).float()
    images = photos(model).float()
    reduced = mmclca.reduce_tokens(model, 'DynamicViT', 0.7)
    found, expected = scales(reduced), scales(model)
    assert {name: found[name] for name in expected} == expected
    assert {found[x][0] for x in found.keys() - expected.keys()} == {1.0}
    assert reduced.no_weight_decay() == model.no_weight_decay()
    ema = ModelEmaV3(reduced, decay=0.5)
    optimizer = create_optimizer_v2(reduced, 'adamw', lr=0.1, layer_decay=0.5)
    reduced.train()
    with torch.autocast('cpu', torch.bfloat16):
        loss = reduced(images).float().square().mean()
        loss = loss + reduced.auxiliary_loss()
    loss.backward()
    before = deepcopy(reduced.state_dict())
    optimizer.step()
    ema.update(reduced)
    for name, value in ema.module.state_dict().items():
        between = (before[name] + reduced.state_dict()[name]) / 2
        torch.testing.assert_close(value, between)
    reduced.eval()
    features = reduced.forward_features(images)
    torch.testing.assert_close(reduced.forward_head(features), reduced(images))
    reduced.reset_classifier(2)
    assert reduced(images).shape == (3, 2)
    assert isinstance(reduced.get_classifier(), type(model.get_classifier()))


@pytest.mark.slow
def test_training_of_transformers_as_in_timm():
    model = small_transformer('Dinov2ForImageClassification')
    reduced = mmclca.reduce_tokens(model, keep_rate=0.7)
    found = scales(reduced)
    assert found['dinov2.embeddings.cls_token'] == (0.5**5, 0.0)
    assert found['dinov2.encoder.layer.0.mlp.fc1.weight'] == (0.5**4, 0.1)
    assert found['dinov2.layernorm.weight'] == (0.5**1, 0.0)
    assert found['classifier.weight'] == (1.0, 0.1)
    reduced.reset_classifier(2)
    assert reduced(small_images()).logits.shape == (3, 2)
    assert reduced.get_classifier().out_features == 2


def test_checkpointing_keeps_gradients():
    model = small_timm()
    grads = []
    for enable in (False, True):
        reduced = mmclca.reduce_tokens(model, 'ToMe', 0.7, copy=True).train()
        reduced.set_grad_checkpointing(enable)
        reduced(photos(model)).sum().backward()
        grads.append([x.grad for x in reduced.parameters()])
    torch.testing.assert_close(*grads)


def test_cost_and_pictures_of_reduced_model():
    model = small_timm('registers')
    images, counter = photos(model, batch=1), MacCounter()
    with torch.no_grad(), counter:
        model(images)
    same = count(mmclca.reduce_tokens(model, None))
    assert same.flops == counter.without_distances()
    reduced = mmclca.reduce_tokens(model, 'EViT', 0.5, layers=(1, 2))
    cost = count(reduced)
    assert cost.tokens == [20, 13, 10, 10] and cost.flops < same.flops
    view = View('leaf', np.zeros((32, 32, 3), np.uint8), images)
    (shown,) = find_kept_patches(reduced, [view])
    assert [len(stage.weights) for stage in shown.stages] == [13, 10]
    flow = rollout(reduced, images)
    assert flow.shape == (1, 4, 4) and 0 < flow.sum() < 1
    assert class_activation_maps(reduced, images).shape == (1, 4, 4)


@NEEDS_COMPILER
@pytest.mark.slow
@pytest.mark.parametrize(
    ('kind', 'method'), [('map_with_cls', 'ATS'), ('diff_scaling', 'ToMe')]
)
def test_exported_reduced_model_equals(kind, method, tmp_path):
    model = small_timm(kind).float()
    reduced = mmclca.reduce_tokens(model, method, layers=(1, 2))
    assert mmclca.export_onnx(reduced, tmp_path / 'x.onnx') < 1e-4


@NEEDS_COMPILER
@pytest.mark.slow
@pytest.mark.parametrize('name', ['ViTForImageClassification', None])
def test_reduced_model_compiles_without_breaks(name):
    model = small_transformer(name) if name else small_timm('parallel')
    images = small_images()
    reduced = mmclca.reduce_tokens(model, 'DynamicViT', layers=(1,))
    compiled = torch.compile(reduced, fullgraph=True, backend='aot_eager')

    def scores(model):
        return model(images).logits if name else model(images)

    torch.testing.assert_close(scores(compiled), scores(reduced))
    reduced.train()
    (scores(compiled).sum() + reduced.auxiliary_loss()).backward()
    assert all(x.grad.any() for x in reduced.reducer.parameters())
