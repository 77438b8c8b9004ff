# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Grafit as a model: training, bank and runs."""

import pytest
import torch
import toy_backbones  # noqa: F401 registers them
from mmengine.logging import MessageHub
from mmpretrain.structures import DataSample
from small_models import arch
from torch import distributed
from torch.multiprocessing import spawn

from mmclca.checkpoints.load import load
from mmclca.models.selfsup.grafit import instance_loss, knn_loss, update_bank
from mmclca.registry import MODELS

VIT = dict(
    type='mmclca.TokenReductionViT',
    arch=arch(3),
    img_size=32,
    patch_size=8,
    reducer=dict(type='mmclca.DynamicViT', keep_rate=0.5),
    reduce_at=(1,),
)
BACKBONES = dict(
    resnet=dict(type='ResNet', depth=18, base_channels=4, stem_channels=4),
    vit=VIT,
)
PLAIN = dict(type='mmclca.ToyPlain')
LABELS = torch.tensor([0, 1, 2, 0, 1, 3, 0, 1])
NORM = dict(type='LN')


def grafit(backbone=VIT, projector='mlp', **settings):
    """Build a model with a bank of eight images."""
    torch.manual_seed(0)
    small = dict(hidden=8, out_channels=6, num_classes=4, norm_cfg=NORM, k=3)
    small.update(type='mmclca.Grafit', projector=projector, num_views=2)
    model = MODELS.build({**small, **settings, 'backbone': backbone})
    model.head.start(LABELS)
    MessageHub.get_current_instance().update_info('max_iters', 10)
    return model.train()


def samples(index):
    return [DataSample(metainfo=dict(sample_idx=i)) for i in index]


def views(number=2, size=32, seed=0):
    chance = torch.Generator().manual_seed(seed)
    return list(torch.randn(number, 4, 3, size, size, generator=chance))


@pytest.mark.parametrize('name', BACKBONES)
def test_grafit_trains_all_parameters_except_target(name):
    model = grafit(BACKBONES[name])
    inputs = views(size=32 if name == 'vit' else 64)
    losses = model.loss(inputs, samples([0, 3, 5, 7]))
    assert losses['alone'] == 1
    sum(v for k, v in losses.items() if 'loss' in k).backward()
    without = {n for n, p in model.named_parameters() if p.grad is None}
    target = {n for n, _ in model.named_parameters() if 'target.' in n}
    assert without == target
    scores = model.eval()(inputs[0], samples([0] * 4), mode='predict')
    assert scores[0].pred_score.sum().item() == pytest.approx(1)


def test_grafit_losses_bank_and_target_equal_definition():
    model = grafit(PLAIN, instance_weight=0.5)
    inputs, index = views(), torch.tensor([0, 3, 5, 7])
    bank, rest = model.head.bank, samples(index.tolist())
    with torch.no_grad():
        made = [model.neck(model.backbone(x))[0] for x in inputs]
        online = [model.predictor(x) for x in made]
    losses = model.loss(inputs, rest)
    own = knn_loss(made[0], bank, index, LABELS)
    close = torch.testing.assert_close
    close(losses['instance_loss'], 0.5 * instance_loss(online, made))
    close(model.head.bank, update_bank(bank, made[0], index))
    assert not model.head.bank.equal(bank) and own.isfinite()
    before = model.neck[0].weight.detach().clone()
    with torch.no_grad():
        model.neck[0].weight += 1
    model.loss(inputs, rest)
    moved = model.target.module.neck[0].weight - before
    assert 0 < moved.mean() < 0.004


def test_classifier_loads_grafit_backbone(tmp_path):
    head = dict(type='LinearClsHead', num_classes=2, in_channels=24)
    model = MODELS.build(
        dict(type='ImageClassifier', backbone=PLAIN, head=head)
    )
    own = grafit(PLAIN).state_dict()
    torch.save(dict(state_dict=own), tmp_path / 'own.pth')
    load(model, str(tmp_path / 'own.pth'), strict=False)
    assert model.backbone.conv.weight.equal(own['backbone.conv.weight'])


def test_grafit_has_published_parameter_count():
    trunk = dict(type='ResNet', depth=50)
    sizes = dict(hidden=4096, out_channels=None, norm_cfg=dict(type='BN1d'))
    model = grafit(trunk, instance_weight=0, **sizes)
    assert sum(p.numel() for p in model.parameters()) == 32_957_760


def test_grafit_equals_snca_without_instance_loss():
    model = grafit(projector='fc', instance_weight=0, num_views=1)
    names = {name.split('.')[0] for name, _ in model.named_parameters()}
    assert names == {'backbone', 'neck'}
    losses = model.loss(views()[0], samples(range(4)))
    assert 'instance_loss' not in losses


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        (dict(projector='conv'), "no 'conv'"),
        (dict(reduction='none'), "no 'none'"),
        (dict(num_views=1), 'num_views=1 must be'),
        (dict(num_views=3), 'MultiView'),
    ],
)
def test_grafit_is_refused_if_setting_is_invalid(settings, message):
    with pytest.raises(ValueError, match=message):
        grafit(**settings).loss(views(), samples(range(4)))


def one_of_two(rank, folder):
    """Train one step on half of the batch; save losses and bank."""
    place = f'file://{folder}/meet'
    distributed.init_process_group('gloo', place, rank=rank, world_size=2)
    half = [view[2 * rank : 2 * rank + 2] for view in views()]
    found = step(half, [0, 3, 5, 7][2 * rank : 2 * rank + 2])
    torch.save(found, f'{folder}/{rank}.pt')
    distributed.destroy_process_group()


def step(inputs, index):
    model = grafit(PLAIN)
    losses = model.loss(inputs, samples(index))
    named = {k: v.item() for k, v in losses.items() if k != 'alone'}
    return named, model.head.bank


@pytest.mark.slow
def test_grafit_two_processes_equal_one(tmp_path):
    spawn(one_of_two, (tmp_path,), nprocs=2)
    halves = [torch.load(tmp_path / f'{rank}.pt') for rank in range(2)]
    losses, bank = step(views(), [0, 3, 5, 7])
    for name in ('knn_loss', 'instance_loss'):
        mean = sum(half[0][name] for half in halves) / 2
        assert mean == pytest.approx(losses[name], abs=1e-6)
    for half in halves:
        torch.testing.assert_close(half[1], bank)
