# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from math import inf, isnan
from typing import Literal

import pytest
from every_config import CONFIGS, piece
from mmengine.config import Config

from mmclca.checkpoints.plain_config import (
    check_settings,
    parse_plain_config,
    without_training,
)
from mmclca.checkpoints.stored import usable_parts
from mmclca.registry import MODELS

HELPER = dict(model='helper.py', checkpoint='x')
# unsafe model settings and the reported problem
IN_MODEL = {
    'type of Python': (dict(type='os.mkdir'), "model.type='os.mkdir'"),
    'module': (dict(type='helper'), "model.type='helper'"),
    'no name': (dict(type=3), 'model.type=3'),
    'another scope': (dict(type='helper.ImageClassifier'), 'model.type='),
    'no prefix': (
        dict(backbone=dict(type='TokenReductionViT')),  # a module
        "model.backbone.type='TokenReductionViT'",
    ),
    'prefix of another': (
        dict(backbone=dict(type='mmclca.ResNet')),
        "backbone.type='mmclca.ResNet'",
    ),
    'class by its module': (
        dict(backbone=dict(type='mmpretrain.models.ResNet')),
        'backbone.type=',
    ),
    'classifier in a backbone': (
        dict(backbone=dict(type='mmclca.TokenReductionClassifier')),
        'model.backbone.type=',
    ),
    'classifier in a model': (
        dict(backbone=dict(model=dict(type='ImageClassifier'))),
        'model.backbone.model.type=',
    ),
    'backbone as a stem': (
        dict(backbone=dict(stem=dict(type='ResNet'))),
        "model.backbone.stem.type='ResNet'",
    ),
    'backbone as a head': (dict(head=dict(type='ResNet')), 'model.head.type'),
    'step in a model': (
        dict(backbone=dict(norm_cfg=dict(type='Resize'))),
        "norm_cfg.type='Resize'",
    ),
    'teacher below': (
        dict(backbone=dict(type='mmclca.TokenReductionViT', teacher=HELPER)),
        "model.backbone.teacher.model='helper.py', "
        "model.backbone.teacher.checkpoint='x'",
    ),
    'retriever': (
        dict(type='mmclca.TokenReductionRetriever', prototype='x.pth'),
        "TokenReductionRetriever', model.prototype='x.pth'",
    ),
    'timm': (
        dict(backbone=dict(type='TIMMBackbone', norm_layer='os._exit')),
        "model.backbone.type='TIMMBackbone', "
        "model.backbone.norm_layer='os._exit'",
    ),
    'timm file': (
        dict(type='TimmClassifier', checkpoint_path='x.pth'),
        "model.checkpoint_path='x.pth'",
    ),
    'hub': (
        dict(type='HuggingFaceClassifier', model_name='a', pretrained=True),
        "HuggingFaceClassifier', model.model_name='a'",
    ),
    'hub code': (dict(trust_remote_code=True), 'model.trust_remote_code'),
    'answers': (
        dict(head=dict(type='VQAGenerationHead', answer_list_path='x.pkl')),
        "model.head.type='VQAGenerationHead', model.head.answer_list_path=",
    ),
    'tokenizer': (
        dict(head=dict(type='GroundingHead', tokenizer=dict(type='LN'))),
        "model.head.type='GroundingHead'",
    ),
    'margins': (
        dict(head=dict(type='ArcFaceClsHead', margins='margins.txt')),
        "margins='margins.txt'",
    ),
    'convolution': (
        dict(backbone=dict(patch_cfg=dict(conv_type='helper'))),
        "model.backbone.patch_cfg.conv_type='helper'",
    ),
    'in tuples': (
        dict(backbone=dict(layer_cfgs=({'a': [dict(type='os.mkdir')]},))),
        "model.backbone.layer_cfgs.a.type='os.mkdir'",
    ),
}
IN_DATA = {
    'model as a step': (
        dict(pipeline=[dict(type='ResNet')]),  # would import ResNet.py
        "data.dataset.pipeline.type='ResNet'",
    ),
    'layer as a step': (
        dict(pipeline=[dict(type='CenterCrop', pad_cfg=dict(type='LN'))]),
        "data.dataset.pipeline.pad_cfg.type='LN'",
    ),
    'inner step': (
        dict(
            pipeline=[
                dict(type='RandomApply', transforms=[dict(type='helper')])
            ]
        ),
        "data.dataset.pipeline.transforms.type='helper'",
    ),
    'step by another name': (
        dict(pipeline=[dict(type='RandomResize', resize_type='helper')]),
        "data.dataset.pipeline.resize_type='helper'",
    ),
    'evaluated': (
        dict(pipeline=[dict(type='torchvision/ConvertImageDtype', dtype='f')]),
        "type='torchvision/ConvertImageDtype', data.dataset.pipeline.dtype=",
    ),
    'albumentations': (
        dict(pipeline=[dict(type='Albu', transforms=[])]),
        "pipeline.type='Albu'",
    ),
    'handlers': (
        dict(pipeline=[dict(type='PackMultiTaskInputs')]),
        "type='PackMultiTaskInputs'",
    ),
    'file client': (
        dict(
            pipeline=[
                dict(
                    type='LoadImageFromFile',
                    backend_args=dict(backend='memcached', sys_path='here'),
                )
            ]
        ),
        "backend_args.sys_path='here', data.dataset.pipeline.backend_args",
    ),
    'cache': (
        dict(pipeline=[dict(type='mmclca.CacheImages', folder='/x')]),
        "pipeline.folder='/x'",
    ),
}


@pytest.mark.parametrize(
    'config, message',
    [
        *((dict(model=given), named) for given, named in IN_MODEL.values()),
        *(
            (dict(data=dict(dataset=given)), named)
            for given, named in IN_DATA.values()
        ),
    ],
    ids=[*IN_MODEL, *IN_DATA],
)
def test_unsafe_setting_is_refused(config, message):
    with pytest.raises(ValueError, match='not allowed') as error:
        check_settings(config)
    assert message in str(error.value)


@pytest.mark.parametrize('path', CONFIGS[::40], ids=lambda path: path.stem)
def test_config_is_parsed_and_allowed(path):
    config = Config.fromfile(path)
    read = parse_plain_config(config.pretty_text)
    assert read.to_dict() == config.to_dict()
    parts = usable_parts(config.to_dict())
    check_settings(parts)
    dataset = parts['test_dataloader']['dataset']
    assert {*dataset} == {'type', 'pipeline'} and dataset['pipeline']


@pytest.mark.parametrize('name', ['deit-tiny-distilled', 'deit3-tiny'])
def test_plain_vit_is_allowed(name):
    model = piece(f'models/{name}-p16')['model']
    norm_cfg = dict(type='LN2d', eps=1e-6)
    model['backbone']['stem'] = dict(type='mmclca.HMLPStem', norm_cfg=norm_cfg)
    model['backbone']['branches'] = 2
    check_settings(without_training(dict(model=model)))


@pytest.mark.parametrize(
    'name, options',
    [
        ('cait-xxs24-p16', dict(cls_at=4, num_class_layers=0)),
        ('resmlp-s12-p16', dict(communication='conv', ending='class_mlp')),
        ('resmlp-s12-p16', dict(norm_cfg=dict(type='mmclca.Affine'))),
        ('patchconvnet-s60', dict(pooling='average', stem=None)),
        ('patchconvnet-s60', dict(norm_cfg=dict(type='BN'), with_pos=True)),
        ('patchconvnet-s60-per-class', {}),
    ],
)
def test_full_network_is_allowed(name, options):
    model = piece(f'models/{name}')['model']
    model['backbone'].update(options)
    check_settings(without_training(dict(model=model)))


def test_attention_pool_is_allowed_as_neck():
    pool = dict(type='mmclca.AttentionPool', in_channels=2048)
    backbone = dict(type='ResNet', depth=50)
    check_settings(dict(model=dict(backbone=backbone, neck=pool)))


def test_mmpretrain_classifier_is_allowed():
    layers = dict(norm_cfg=dict(type='LN2d'), act_cfg=dict(type='GELU'))
    check_settings(
        dict(
            model=dict(
                type='mmpretrain.ImageClassifier',
                backbone=dict(type='ConvNeXt', arch='768/32', **layers),
                neck=[dict(type='GlobalAveragePooling')],
                head=dict(
                    type='LinearClsHead',
                    loss=dict(type='LabelSmoothLoss', mode='original'),
                ),
            ),
            data_preprocessor=dict(type='ClsDataPreprocessor', mean=[1.0]),
        )
    )


def test_registered_type_is_refused_from_other_packages(monkeypatch):
    class Foreign:
        pass

    config = dict(model=dict(backbone=dict(type='mmclca.Foreign')))
    monkeypatch.setitem(MODELS.module_dict, 'Foreign', Foreign)
    for package in ('transformers.models', 'mmclca_of_mine.models'):
        Foreign.__module__ = package
        with pytest.raises(ValueError, match="type='mmclca.Foreign'"):
            check_settings(config)
    Foreign.__module__ = 'mmclca.models.backbones.foreign'
    check_settings(config)


def test_without_training_drops_training_settings():
    start = dict(type='Pretrained', checkpoint='http://a/b.pth')
    settings = dict(
        _scope_='helper',
        layers=[dict(init_cfg=start, depth=3), (dict(init_cfg=[start]),)],
        more=dict(batch_augments=dict(augments=['x']), rates={1, 2}),
    )
    assert without_training(settings) == dict(
        layers=[dict(depth=3), ({},)], more=dict(rates={1, 2})
    )


def test_pretty_text_is_parsed_exactly():
    settings = dict(
        model=dict(type='A', rates=(0.5, -1e-6), none=None, sure=True),
        odd={'with space': {1, 2}, 3: [{}]},
        note='it\'s "quoted"\nand long ' + 30 * 'word ',
        most=inf,
        least=-inf,
    )
    read = parse_plain_config(Config(settings).pretty_text)
    assert read.to_dict() == settings
    assert isnan(parse_plain_config('x = nan').x)


@pytest.mark.parametrize(
    'text, message',
    [
        ('a = 1\nimport os', 'line 2 .*import os'),
        ('a = open("x")', r"line 1 .*open\('x'\)"),
        ('a = dict(b=[f()])', r'line 1 .*f\(\)'),
        ('a = dict(**b)', 'line 1 is'),
        ('a = {**b}', 'line 1 is'),
        ('a = dict([(1, 2)], 3)', 'line 1 is'),
        ('a = b', 'line 1 .*b'),
        ("a = f'{b}'", 'line 1 is'),
        ("a = b'x'", 'line 1 is'),
        ('a = ...', 'line 1 is'),
        ("a = -'x'", 'not plain settings'),
        ('a = {[]: 1}', 'not plain settings'),
        ('a, b = 1, 2', 'line 1 is'),
        ('a.b = 1', 'line 1 is'),
        ('a = [i for i in (1, 2)]', 'line 1 is'),
        ('a = 1\na =', 'line 2 is'),
        ('text = 1', 'text is reserved'),
    ],
)
def test_text_is_refused_if_not_plain_settings(text, message):
    with pytest.raises(ValueError, match=message):
        parse_plain_config(text)


def test_option_is_allowed_if_annotated_as_literal(monkeypatch):
    class Toy:
        def __init__(self, shade: Literal['dark', 'light'] = 'dark'):
            pass

    class Child(Toy):
        def __init__(self, **options):
            pass

    for kind in (Toy, Child):
        kind.__module__ = 'mmclca.models.toy'
        monkeypatch.setitem(MODELS.module_dict, kind.__name__, kind)
        backbone = dict(type=f'mmclca.{kind.__name__}', shade='light')
        check_settings(dict(model=dict(backbone=backbone)))
        backbone['shade'] = 'helper'
        with pytest.raises(ValueError, match='shade'):
            check_settings(dict(model=dict(backbone=backbone)))
