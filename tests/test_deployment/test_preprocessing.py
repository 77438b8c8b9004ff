# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
from mmengine.config import Config
from torch import nn

from mmclca.deployment import read_preprocessing
from mmclca.registry import MODELS

LOAD, PACK = dict(type='LoadImageFromFile'), dict(type='PackInputs')
RESIZE = dict(
    type='Resize', scale=(40, 36), backend='pillow', interpolation='bicubic'
)
CROP = dict(type='CenterCrop', crop_size=32)
NORMALIZE = dict(mean=[1, 2, 3], std=[4, 5, 6.5], to_rgb=True)


def build(processor):
    model = dict(
        type='mmpretrain.ImageClassifier',
        backbone=dict(type='mmpretrain.LeNet5'),
        data_preprocessor=processor,
    )
    return MODELS.build(model)


def describe(*steps, processor=NORMALIZE, load=LOAD):
    dataset = dict(pipeline=[load, *steps, PACK])
    config = Config(dict(test_dataloader=dict(dataset=dataset)))
    return read_preprocessing(config, build(processor))


@pytest.mark.parametrize('load', [LOAD, dict(type='mmclca.LoadPhoto')])
def test_preprocessing_describes_resize_crop_and_normalization(load):
    found = describe(RESIZE, CROP, load=load)
    assert found.steps == [
        dict(
            type='Resize',
            width=40,
            height=36,
            backend='pillow',
            interpolation='bicubic',
        ),
        dict(type='CenterCrop', width=32, height=32),
    ]
    assert found.channel_order == 'RGB'
    assert (found.mean, found.std) == ([1, 2, 3], [4, 5, 6.5])
    assert found.size == (32, 32)


def test_preprocessing_describes_resize_edge_without_normalization():
    edge = dict(type='ResizeEdge', scale=50)
    found = describe(
        edge, dict(CROP, crop_size=(32, 24)), processor=dict(to_rgb=False)
    )
    assert found.steps[0] == dict(
        type='ResizeEdge', scale=50, backend='cv2', interpolation='bilinear'
    )
    assert found.channel_order == 'BGR'
    assert (found.mean, found.std) == ([0, 0, 0], [1, 1, 1])
    assert found.size == (24, 32)
    assert describe(dict(RESIZE, scale=(40, 30)), CROP).size == (30, 32)


def test_preprocessing_unwraps_the_image_cache():
    cache = dict(type='mmclca.CacheImages', transforms=[LOAD, RESIZE])
    assert describe(CROP, load=cache) == describe(RESIZE, CROP)


def test_all_unsupported_steps_are_listed():
    with pytest.raises(ValueError) as error:
        describe(
            dict(type='Resize', scale=32, keep_ratio=True),
            dict(type='ColorTransform', prob=1.0, magnitude=0.1),
            dict(type='CenterCrop', crop_size=32, auto_pad=True),
            load=dict(LOAD, color_type='grayscale'),
        )
    for problem in (
        "LoadImageFromFile(color_type='grayscale')",
        'Resize(keep_ratio=True)',
        'ColorTransform',
        'CenterCrop(auto_pad=True)',
    ):
        assert problem in str(error.value)


def test_unsupported_data_preprocessor_is_refused():
    dataset = dict(pipeline=[LOAD, RESIZE, PACK])
    config = Config(dict(test_dataloader=dict(dataset=dataset)))
    model = build(NORMALIZE)
    model.data_preprocessor = nn.Identity()
    with pytest.raises(ValueError, match='Identity'):
        read_preprocessing(config, model)


@pytest.mark.parametrize(
    'steps',
    [
        [],
        [CROP],
        [dict(type='ResizeEdge', scale=32)],
        [dict(type='ResizeEdge', scale=30), CROP],
    ],
    ids=str,
)
def test_pipeline_is_refused_if_image_sizes_vary(steps):
    with pytest.raises(ValueError, match='CenterCrop'):
        describe(*steps)


def test_padding_is_refused_unless_it_has_no_effect():
    processor = dict(NORMALIZE, pad_size_divisor=32)
    assert describe(RESIZE, CROP, processor=processor).size == (32, 32)
    with pytest.raises(ValueError, match='pad_size_divisor'):
        describe(RESIZE, processor=processor)
