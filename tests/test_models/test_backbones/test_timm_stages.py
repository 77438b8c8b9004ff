# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Networks of timm as backbones: maps, weights and merged branches."""

import pytest
import timm
import torch

from mmclca.checkpoints.load import load
from mmclca.errors import Error
from mmclca.evaluation.cost import count
from mmclca.models.backbones import TimmStages, fuse
from mmclca.registry import MODELS

NAMES = ('test_resnet', 'test_convnext', 'test_vit')


def classifier(arch, **backbone):
    backbone = dict(type='mmclca.TimmStages', arch=arch, **backbone)
    head = dict(type='mmclca.LayerFusionHead', num_classes=3, num_parts=2)
    channels = MODELS.build(backbone).channels
    sizes = dict(in_channels=channels, num_layers=len(channels))
    model = dict(type='ImageClassifier', backbone=backbone, head=head | sizes)
    return MODELS.build(model).eval()


@pytest.mark.parametrize('arch', NAMES)
def test_maps_equal_timm_with_weights_of_timm(arch, tmp_path):
    net, path = timm.create_model(arch).eval(), tmp_path / 'weights.pth'
    torch.save(net.state_dict(), path)
    model = classifier(arch)
    load(model, str(path), strict=False)
    images = torch.randn(2, 3, *model.backbone.img_size)
    ours = model.backbone(images)
    theirs = net.forward_intermediates(images, intermediates_only=True)
    # without the stem, which ConvNeXt of timm before 1.0.16 returns
    theirs = theirs[-len(model.backbone.channels) :]
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    'arch', ['test_convnext', 'xcit_nano_12_p16_224', 'fastvit_t8']
)
def test_stages_use_every_parameter(arch):
    model = TimmStages(arch, img_size=32).eval()
    maps = model(torch.randn(1, 3, *model.img_size))
    sum(x.mean() for x in maps).backward()
    gradients = {name: x.grad for name, x in model.named_parameters()}
    assert [name for name, x in gradients.items() if x is None] == []


def test_network_is_refused_if_timm_cannot_return_its_stages(monkeypatch):
    net = torch.nn.Linear(1, 1)
    monkeypatch.setattr(timm, 'create_model', lambda arch: net)
    monkeypatch.setattr(timm, '__version__', '1.0.11')
    message = r"timm 1\.0\.11 .*arch='test_resnet'.*pip install"
    with pytest.raises(Error, match=message):
        TimmStages('test_resnet')


@pytest.mark.parametrize('arch', NAMES)
def test_cost_depends_on_the_image_size(arch):
    costs = [count(classifier(arch, img_size=x)).flops for x in (64, 128)]
    assert costs[1] > 3 * costs[0]


def test_head_reads_mean_and_deviation_of_maps():
    model = classifier('test_resnet').double()
    images = torch.randn(2, 3, 64, 64).double()
    found = model.head.pre_logits(model.backbone(images))
    maps = model.backbone(images)
    std, mean = torch.std_mean(maps[0], dim=(2, 3), correction=0)
    own = torch.cat([torch.nn.functional.layer_norm(x, x.shape[-1:])
                     for x in (mean, std)], dim=1)  # fmt: skip
    assert torch.allclose(found[:, : own.shape[1]], own, atol=1e-5)
    assert found.shape[1] == 2 * sum(model.backbone.channels)
    # a constant map has a gradient, unlike its standard deviation
    flat = torch.zeros(1, 4, 2, 2, requires_grad=True)
    head = dict(type='mmclca.LayerFusionHead', num_classes=2, in_channels=4)
    head = MODELS.build(dict(head, num_layers=1, num_parts=2))
    head.pre_logits((flat,)).sum().backward()
    assert flat.grad.isfinite().all()


def test_merged_branches_give_the_same_maps(tmp_path):
    torch.manual_seed(0)
    plain = TimmStages('mobileone_s0').double().eval()
    for part in plain.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 1.5)
    images = torch.randn(1, 3, 64, 64).double()
    before = plain(images)
    after = fuse(plain)(images)
    for one, other in zip(before, after, strict=True):
        assert torch.allclose(one, other, atol=1e-9)
    merged = TimmStages('mobileone_s0', fused=True).double().eval()
    merged.load_state_dict(plain.state_dict())
    assert torch.equal(merged(images)[-1], after[-1])
