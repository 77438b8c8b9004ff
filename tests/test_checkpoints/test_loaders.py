# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Each loader loads each file format with equal results, or raises."""

from functools import partial

import mmpretrain
import pytest
import torch
from foreign_models import config, theirs
from mmengine.config import Config
from mmengine.runner import Runner, load_checkpoint
from safetensors.torch import save_file

from mmclca.apis import load_classifier
from mmclca.checkpoints.load import load
from mmclca.engine.runner import SafeRunner
from mmclca.registry import MODELS

LOADED = 'backbone.layers.1.attn.qkv.weight', 'head.layers.head.bias'


def by_load(path, cfg, work_dir):
    model = MODELS.build(cfg)
    load(model, path)
    return model


def by_state_dict(path, cfg, work_dir):
    model = MODELS.build(cfg)
    model.load_state_dict(torch.load(path))
    return model


def by_mmengine(path, cfg, work_dir):
    model = MODELS.build(cfg)
    load_checkpoint(model, path)
    return model


def by_runner(path, cfg, work_dir, runner_class):
    name = str(work_dir)
    options = dict(load_from=path, default_scope='mmpretrain')
    runner = runner_class(cfg, name, experiment_name=name, **options)
    runner.load_or_resume()
    return runner.model


def by_get_model(path, cfg, work_dir):
    return mmpretrain.get_model(Config(dict(model=cfg)), pretrained=path)


def by_init_cfg(path, cfg, work_dir, **options):
    init = dict(type='Pretrained', checkpoint=path, **options)
    model = MODELS.build(dict(cfg, init_cfg=init))
    model.init_weights()
    return model


def by_pretrained(path, cfg, work_dir):
    init = dict(type='mmclca.Pretrained', checkpoint=path)
    model = MODELS.build(dict(cfg, init_cfg=init))
    model.init_weights()
    return model


def by_teacher(path, cfg, work_dir):
    loss = dict(type='mmclca.LogitDistillation')
    teacher = dict(model=cfg, checkpoint=path, loss=loss)
    student = MODELS.build(dict(cfg, teacher=teacher))
    student.init_weights()
    return student.teacher.model


def by_classifier(path, cfg, work_dir):
    dataset = dict(type='CustomDataset', pipeline=[])
    loader = dict(test_dataloader=dict(dataset=dataset))
    return load_classifier(Config(dict(model=cfg, **loader)), path)


LOADERS = dict(
    load=by_load,
    SafeRunner=partial(by_runner, runner_class=SafeRunner),
    init_cfg=by_init_cfg,
    Pretrained=by_pretrained,
    Teacher=by_teacher,
    load_classifier=by_classifier,
    load_state_dict=by_state_dict,
    load_checkpoint=by_mmengine,
    Runner=partial(by_runner, runner_class=Runner),
    get_model=by_get_model,
)
FORMATS = dict(
    bare=dict,
    model=lambda weights: dict(model=weights, epoch=300),
    state_dict=lambda weights: dict(state_dict=weights, meta={}),
    teacher=lambda weights: dict(teacher=weights, optimizer={}),
    ddp=lambda weights: {f'module.{k}': x for k, x in weights.items()},
    safetensors=dict,
)


def write(weights, name, folder):
    """Write weights in a format; return the path."""
    if name == 'safetensors':
        path = folder / 'weights.safetensors'
        save_file(weights, path)
    else:
        path = folder / 'weights.pth'
        torch.save(FORMATS[name](weights), path)
    return str(path)


@pytest.mark.parametrize('name', FORMATS)
@pytest.mark.parametrize('loader', LOADERS)
def test_each_loader_loads_each_format(loader, name, tmp_path):
    run = LOADERS[loader]
    expected = theirs().state_dict()
    path = write(expected, name, tmp_path)
    tensors = run(path, config(), tmp_path / 'work').state_dict()
    names = 'blocks.1.attn.qkv.weight', 'head.bias'
    for ours, name in zip(LOADED, names, strict=True):
        assert torch.equal(tensors[ours], expected[name].to(tensors[ours]))


OTHERS = dict(
    another_width=dict(dims=32), more_layers=dict(depth=5), another_network={}
)


@pytest.mark.parametrize('loader', LOADERS)
@pytest.mark.parametrize('case', OTHERS)
def test_each_loader_refuses_other_networks(loader, case, tmp_path):
    run = LOADERS[loader]
    weights = theirs().state_dict()
    if case == 'another_network':
        weights = {f'layer1.{i}.weight': torch.ones(3) for i in range(3)}
    path = write(weights, 'bare', tmp_path)
    with pytest.raises(ValueError, match='does not match|has no parameter'):
        run(path, config(**OTHERS[case]), tmp_path / 'work')


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
