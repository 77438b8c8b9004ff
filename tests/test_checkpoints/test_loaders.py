# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Each loader loads each file as ``load`` does, or stops with one line."""

from functools import partial

import pytest
import torch
from foreign_models import config, images, release, theirs, write
from weight_loaders import KINDS, LOADERS, PLAIN, STRICT

from mmclca.checkpoints.load import load
from mmclca.registry import MODELS


def contents(name):
    """Contents of a file, from equal weights for each name."""
    torch.manual_seed(0)
    timm = theirs()
    weights = timm.state_dict()
    encoder = {k: x for k, x in weights.items() if not k.startswith('head.')}
    match name:
        case 'model':  # DeiT
            return dict(model=weights, epoch=300)
        case 'state_dict':
            return dict(state_dict=weights, meta={})
        case 'ddp':
            return {f'module.{k}': x for k, x in weights.items()}
        case 'mae':
            decoder = {f'decoder_{k}': x for k, x in encoder.items()}
            mask = dict(mask_token=torch.ones(1, 1, 16))
            return dict(model=encoder | decoder | mask)
        case 'dino':
            teacher = {f'backbone.{k}': x for k, x in encoder.items()}
            teacher |= {'head.mlp.0.weight': torch.ones(8, 16)}
            student = {f'module.{k}': x + 1 for k, x in teacher.items()}
            return dict(student=student, teacher=teacher, epoch=100)
        case 'clca':
            return dict(model=release(timm))
        case 'ours' | 'mmpretrain':
            model = MODELS.build(config())
            load(model, weights)
            weights = model.state_dict()
            if name == 'mmpretrain':
                weights = {
                    k.replace('head.layers.head', 'head.fc'): x
                    for k, x in weights.items()
                }
            meta = dict(dataset_meta=dict(classes=('a', 'b', 'c', 'd', 'e')))
            return dict(state_dict=weights, meta=meta, optimizer={})
    return weights


HEADLESS = ('mae', 'dino')
FILES = (
    'timm',
    'safetensors',
    'model',
    'state_dict',
    'ddp',
    'mae',
    'dino',
    'clca',
    'ours',
    'mmpretrain',
)
QUICK = ('model', 'mae')


def cells(files):
    """Loader, classifier and file; the less important are slow."""
    for loader in LOADERS:
        for kind in KINDS if loader in PLAIN else ['ours']:
            for name in files:
                quick = name in ('model', 'part')
                quick |= kind == 'ours' and name in QUICK
                quick |= (loader, kind) == (PLAIN[0], 'ours')
                marks = () if quick else pytest.mark.slow
                yield pytest.param(loader, kind, name, marks=marks)


def classifier(kind, name='timm', **options):
    """Config of a classifier for a file."""
    cfg = config(cla=name == 'clca', **options)
    settings = dict(KINDS[kind])
    if name == 'clca':
        settings.pop('head', None)
    return cfg | settings


def file(folder, name):
    """Write a file; return the path."""
    ending = 'safetensors' if name == 'safetensors' else 'pth'
    return write(folder / f'weights.{ending}', contents(name))


@torch.no_grad()
@pytest.mark.parametrize('loader, kind, name', [*cells(FILES)])
def test_each_loader_loads_each_file_as_load_does(
    loader, kind, name, tmp_path
):
    path, cfg = file(tmp_path, name), classifier(kind, name)
    run = partial(LOADERS[loader], path, cfg, tmp_path / 'work')
    if name in HEADLESS and loader in STRICT:
        with pytest.raises((ValueError, RuntimeError), match=r'head\.layers'):
            run()
        return
    model = run().float().eval()
    expected = MODELS.build(cfg).eval()
    load(expected, path, strict=False)
    x = images().float()
    ours, theirs = model.backbone(x)[-1], expected.backbone(x)[-1]
    assert torch.allclose(ours, theirs, atol=1e-6, rtol=0)
    if name not in HEADLESS and loader != 'backbone':
        assert torch.allclose(model(x), expected(x), atol=1e-6, rtol=0)


@torch.no_grad()
@pytest.mark.slow
@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('loader', PLAIN)
def test_plain_loaders_load_released_files(loader, kind, shared, tmp_path):
    path = shared / 'weights' / 'deit_tiny_patch16_224.pth'
    if not path.is_file():
        pytest.skip(f'{path} is not there')
    cfg = config() | KINDS[kind]
    cfg['backbone'] = dict(type='mmclca.TokenReductionViT', arch='deit-tiny')
    cfg['head'] = dict(cfg['head'], in_channels=192, num_classes=1000)
    model = LOADERS[loader](str(path), cfg, tmp_path / 'work').eval()
    expected = MODELS.build(cfg).eval()
    load(expected, path)
    x = images(224).float()
    ours, theirs = model.backbone(x)[-1], expected.backbone(x)[-1]
    assert torch.allclose(ours, theirs, atol=1e-6, rtol=0)
    if loader != 'backbone':
        assert torch.allclose(model(x), expected(x), atol=1e-6, rtol=0)


def other(name):
    """Weights of another network, of a part of one, or none."""
    weights = theirs().state_dict()
    if name == 'resnet':
        return {f'layer1.{i}.weight': torch.ones(3) for i in range(3)}
    if name == 'part':
        part = MODELS.build(config()).state_dict()
        return {k: x for k, x in part.items() if '.attn.' in k or 'head.' in k}
    if name == 'nothing':
        return {}
    return dict(model=weights) if name == 'width' else weights


OTHERS = dict(width=dict(dims=32), depth=dict(depth=5))
REFUSED = (*OTHERS, 'resnet', 'part', 'nothing')


@pytest.mark.parametrize('loader, kind, name', [*cells(REFUSED)])
def test_each_loader_refuses_other_networks(loader, kind, name, tmp_path):
    path = write(tmp_path / 'weights.pth', other(name))
    cfg = classifier(kind, **OTHERS.get(name, {}))
    words = 'does not match|has no parameter|part of a network|no weights'
    with pytest.raises(ValueError, match=words):
        LOADERS[loader](path, cfg, tmp_path / 'work')


def test_part_of_a_checkpoint_initializes_a_backbone(tmp_path):
    source = MODELS.build(config())
    torch.save(source.state_dict(), tmp_path / 'whole.pth')
    path = str(tmp_path / 'whole.pth')
    init = dict(type='Pretrained', checkpoint=path, prefix='backbone')
    backbone = MODELS.build(dict(config()['backbone'], init_cfg=init))
    backbone.init_weights()
    for name, value in source.backbone.state_dict().items():
        assert torch.equal(backbone.state_dict()[name], value), name
    backbone = MODELS.build(
        dict(config()['backbone'], init_cfg=init | dict(prefix='encoder.'))
    )
    with pytest.raises(ValueError, match="prefix='encoder.'.*backbone"):
        backbone.init_weights()
