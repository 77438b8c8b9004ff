# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from math import inf, isnan
from typing import Literal

import pytest
from every_config import CONFIGS, piece
from mmengine.config import Config

from mmclca.checkpoints.gate.plain_config import parse_plain_config
from mmclca.checkpoints.gate.settings import check_settings, without_training
from mmclca.checkpoints.gate.stored_config import select_parts
from mmclca.registry import MODELS

HELPER = dict(model='helper.py', checkpoint='x')
NEST = dict(layer_cfgs=({'a': [dict(type='os.mkdir')]},))
VIT = 'mmclca.TokenReductionViT'
# unsafe backbones, and the reported problem below model.backbone
BACKBONES = {
    'no prefix': (dict(type='TokenReductionViT'), ".type='TokenReductionViT'"),
    'prefix of another': (dict(type='mmclca.ResNet'), ".type='mmclca.ResNet'"),
    'class by its module': (dict(type='mmpretrain.models.ResNet'), '.type='),
    'classifier': (dict(type='mmclca.TokenReductionClassifier'), '.type='),
    'inner classifier': (
        dict(model=dict(type='ImageClassifier')),
        '.model.type=',
    ),
    'stem': (dict(stem=dict(type='ResNet')), ".stem.type='ResNet'"),
    'step': (dict(norm_cfg=dict(type='Resize')), ".norm_cfg.type='Resize'"),
    'teacher': (
        dict(type=VIT, teacher=HELPER),
        ".teacher.model='helper.py', model.backbone.teacher.checkpoint='x'",
    ),
    'timm': (
        dict(type='TIMMBackbone', norm_layer='os._exit'),
        ".type='TIMMBackbone', model.backbone.norm_layer='os._exit'",
    ),
    'convolution': (
        dict(patch_cfg=dict(conv_type='helper')),
        ".patch_cfg.conv_type='helper'",
    ),
    'in tuples': (NEST, ".layer_cfgs.a.type='os.mkdir'"),
}
# unsafe model settings, and the reported problem below model
MODEL = {
    'type of Python': (dict(type='os.mkdir'), ".type='os.mkdir'"),
    'module': (dict(type='helper'), ".type='helper'"),
    'no name': (dict(type=3), '.type=3'),
    'another scope': (dict(type='helper.ImageClassifier'), '.type='),
    'backbone as a head': (dict(head=dict(type='ResNet')), '.head.type'),
    'retriever': (
        dict(type='mmclca.TokenReductionRetriever', prototype='x.pth'),
        ".type='mmclca.TokenReductionRetriever', model.prototype='x.pth'",
    ),
    'timm file': (
        dict(type='TimmClassifier', checkpoint_path='x.pth'),
        ".type='TimmClassifier', model.checkpoint_path='x.pth'",
    ),
    'hub': (
        dict(type='HuggingFaceClassifier', model_name='a', pretrained=True),
        ".type='HuggingFaceClassifier', model.model_name='a'",
    ),
    'hub code': (dict(trust_remote_code=True), '.trust_remote_code'),
    'answers': (
        dict(head=dict(type='VQAGenerationHead', answer_list_path='x.pkl')),
        ".head.type='VQAGenerationHead', model.head.answer_list_path=",
    ),
    'tokenizer': (
        dict(head=dict(type='GroundingHead', tokenizer=dict(type='LN'))),
        ".head.type='GroundingHead'",
    ),
    'margins': (
        dict(head=dict(type='ArcFaceClsHead', margins='margins.txt')),
        ".head.margins='margins.txt'",
    ),
}
MEMCACHED = dict(backend='memcached', sys_path='here')
# unsafe steps, and the reported problem below data.pipeline
STEPS = {
    'model': (dict(type='ResNet'), ".type='ResNet'"),  # imports ResNet.py
    'layer': (
        dict(type='CenterCrop', pad_cfg=dict(type='LN')),
        ".pad_cfg.type='LN'",
    ),
    'inner step': (
        dict(type='RandomApply', transforms=[dict(type='helper')]),
        ".transforms.type='helper'",
    ),
    'step by another name': (
        dict(type='RandomResize', resize_type='helper'),
        ".resize_type='helper'",
    ),
    'evaluated': (
        dict(type='torchvision/ConvertImageDtype', dtype='f'),
        ".type='torchvision/ConvertImageDtype', data.pipeline.dtype=",
    ),
    'albumentations': (dict(type='Albu', transforms=[]), ".type='Albu'"),
    'handlers': (
        dict(type='PackMultiTaskInputs'),
        ".type='PackMultiTaskInputs'",
    ),
    'file client': (
        dict(type='LoadImageFromFile', backend_args=MEMCACHED),
        ".backend_args.sys_path='here', data.pipeline.backend_args",
    ),
    'cache': (dict(type='mmclca.CacheImages', folder='/x'), ".folder='/x'"),
}
UNSAFE = [
    *(
        (dict(model=dict(backbone=x)), 'model.backbone', *problem)
        for x, *problem in BACKBONES.values()
    ),
    *((dict(model=x), 'model', *problem) for x, *problem in MODEL.values()),
    *(
        (dict(data=dict(pipeline=[x])), 'data.pipeline', *problem)
        for x, *problem in STEPS.values()
    ),
]


@pytest.mark.parametrize(
    'config, place, problem', UNSAFE, ids=[*BACKBONES, *MODEL, *STEPS]
)
def test_unsafe_setting_is_refused(config, place, problem):
    with pytest.raises(ValueError, match='not allowed') as error:
        check_settings(config)
    assert place + problem in str(error.value)


@pytest.mark.parametrize('path', CONFIGS[::90], ids=lambda path: path.stem)
def test_config_is_parsed_and_allowed(path):
    config = Config.fromfile(path)
    read = parse_plain_config(config.pretty_text)
    assert read.to_dict() == config.to_dict()
    parts = select_parts(config.to_dict())
    check_settings(parts)
    dataset = parts['test_dataloader']['dataset']
    assert {*dataset} == {'type', 'pipeline'} and dataset['pipeline']


BN = dict(type='BN')
STEM = dict(type='mmclca.HMLPStem', norm_cfg=dict(type='LN2d', eps=1e-6))


@pytest.mark.parametrize(
    'name, options',
    [
        ('deit-tiny-distilled-p16', dict(stem=STEM, branches=2)),
        ('cait-xxs24-p16', dict(cls_at=4, num_class_layers=0)),
        ('resmlp-s12-p16', dict(token_mixer='conv', pooling='class_mlp')),
        ('resmlp-s12-p16', dict(norm_cfg=dict(type='mmclca.Affine'))),
        ('patchconvnet-s60', dict(pooling='average', stem=None)),
        ('patchconvnet-s60', dict(norm_cfg=BN, with_pos=True)),
        ('patchconvnet-s60-per-class', {}),
    ],
)
def test_full_network_is_allowed(name, options):
    model = piece(f'models/{name}')['model']
    model['backbone'].update(options)
    check_settings(without_training(dict(model=model)))


def test_mmpretrain_classifier_is_allowed():
    layers = dict(norm_cfg=dict(type='LN2d'), act_cfg=dict(type='GELU'))
    check_settings(
        dict(
            model=dict(
                type='mmpretrain.ImageClassifier',
                backbone=dict(type='ConvNeXt', arch='768/32', **layers),
                neck=[dict(type='mmclca.AttentionPool', in_channels=2048)],
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
