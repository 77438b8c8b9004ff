# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Distillation of layers in pre-training and fine-tuning."""

from copy import deepcopy

import pytest
import torch
from mmpretrain.structures import DataSample
from small_models import build, classifier, vit
from small_selfsup import (
    ATTENTION,
    HIDDEN,
    MAE,
    SIDE,
    WIDE,
    distilled,
    encoder,
    shuffle,
)

from mmclca.models.selfsup import fixed_masks
from mmclca.registry import MODELS

IMAGES = torch.randn(2, 3, SIDE, SIDE)
ORDER = shuffle(2)
SAMPLES = [DataSample().set_gt_label(i) for i in range(2)]


@pytest.fixture
def file(tmp_path):
    """Return a function that saves an encoder or another model."""

    def store(model=None):
        path = str(tmp_path / 'teacher.pth')
        model = model or build(encoder(arch=WIDE))
        torch.save(model.state_dict(), path)
        return path

    return store


def losses_of(model):
    with fixed_masks(model, ORDER):
        return model.loss(IMAGES, None)


def test_teacher_gets_visible_patches_of_student(file):
    model = build(distilled(file(), ATTENTION, HIDDEN))
    seen = []
    model.init_weights()
    teacher = model.teacher.model
    assert teacher is not None
    losses_of(model)  # copies the teacher to memory
    encode = model.teacher.model.backbone.encode
    model.teacher.model.backbone.encode = lambda x, order: (
        seen.append(order) or encode(x, order)
    )
    losses = losses_of(model)
    assert torch.equal(seen[0], ORDER)
    assert [*losses] == [
        'loss',
        'loss_distill_attention_4',
        'loss_distill_hidden_0_4',
    ]
    sum(losses.values()).backward()
    teacher = model.teacher.model
    assert not teacher.training
    assert all(p.grad is None for p in teacher.parameters())
    assert [name for name in model.state_dict() if 'distill' in name] == [
        'distill.0.adapters.4.weight',
        'distill.1.adapters.0.weight',
        'distill.1.adapters.4.weight',
    ]
    assert not [name for name in model.state_dict() if 'teacher' in name]
    assert deepcopy(model).teacher is model.teacher


def test_losses_are_zero_if_student_equals_teacher(file):
    """With weight 0, the total equals the loss of MAE."""
    none = dict(ATTENTION, adapter=False), dict(HIDDEN, adapter=False)
    model = build(distilled('', *none, backbone=encoder()))
    model.teacher.checkpoint = file(model.backbone)
    losses = losses_of(model)
    assert losses.pop('loss') > 0
    assert all(value == 0 for value in losses.values())
    mae = MODELS.build(MAE)
    mae.load_state_dict(model.state_dict())
    weightless = build(distilled(file(), dict(ATTENTION, weight=0.0)))
    weightless.load_state_dict(mae.state_dict(), strict=False)
    assert sum(losses_of(weightless).values()) == losses_of(mae)['loss']


def test_fine_tuning_loss_equals_definition(file):
    backbone = vit(4, img_size=SIDE, patch_size=16)
    loss = [ATTENTION, HIDDEN]
    teacher = dict(backbone=encoder(arch=WIDE), checkpoint=file(), loss=loss)
    model = build(classifier(backbone, teacher=teacher)).train()
    losses = model.loss(IMAGES, SAMPLES)
    plain = build(classifier(backbone))
    plain.load_state_dict(model.state_dict(), strict=False)
    assert losses['loss'] == plain.loss(IMAGES, SAMPLES)['loss']
    # definition: mixed logits of the last layer, all patches
    theirs = MODELS.build(encoder(arch=WIDE))
    theirs.load_state_dict(torch.load(teacher['checkpoint']))
    every = torch.arange(16).expand(2, -1)
    theirs.num_visible = 16
    seen = theirs.encode(IMAGES, every)
    q, k = seen.queries_and_keys(4)
    mix = model.distill[0].adapters['4']
    target = (q @ k.mT / q.size(-1) ** 0.5).detach()
    x = plain.backbone.embed(IMAGES)[0].features
    for layer in plain.backbone.layers[:3]:
        x = layer(x)
    last = plain.backbone.layers[3]
    qkv = (
        last.attn.qkv(last.ln1(x)).view(2, 17, 3, 2, 8).permute(2, 0, 3, 1, 4)
    )
    logits = mix(qkv[0] @ qkv[1].mT / 8**0.5)
    expected = (logits - target).square().mean()
    torch.testing.assert_close(losses['loss_distill_attention_4'], expected)


def test_teacher_can_be_named_by_mmpretrain_config():
    name = 'mae_vit-base-p16_8xb512-amp-coslr-1600e_in1k'
    config = distilled('', dict(ATTENTION, layers=(2,)), backbone=name)
    model = MODELS.build(config)
    assert model.distill[0].adapters['2'].weight.shape[:2] == (12, 2)
