# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Recipes from Touvron's thesis and from Three things."""

import math
from copy import deepcopy

import numpy as np
import pytest
import torch
from every_config import FOLDER, build, piece, read
from mmcv.cnn.bricks import DropPath
from mmengine.dataset import Compose
from mmengine.optim import build_optim_wrapper
from mmengine.registry import PARAM_SCHEDULERS, init_default_scope
from mmpretrain.registry import BATCH_AUGMENTS, MODELS, TRANSFORMS

SMOOTHED, BCE = 'LabelSmoothLoss', 'ThresholdedBCE'
# optimizer, rate, decay, batch, epochs, last rate, loss, mixup and CutMix
# (None: none), stochastic depth (a pair: from the first layer to the last)
RECIPES = {
    'deit/deit-tiny-distilled-p16_4xb256-300e_imagenet-224px': (
        *('AdamW', 1e-3, 0.05, 1024, 300, 1e-5, SMOOTHED, 0.8, 1, (0, 0.1)),
    ),
    'deit/deit-base-distilled-p16_8xb64-30e_imagenet-384px': (
        *('AdamW', 5e-6, 1e-8, 512, 30, 5e-6, SMOOTHED, 0.8, 1, 0),
    ),
    'deit/deit-small-distilled-p16_4xb256-1000e_flowers-224px': (
        *('AdamW', 1e-4, 0.05, 1024, 1000, 1e-5, SMOOTHED, 0.8, 1, (0, 0.1)),
    ),
    'deit/deit-base-distilled-p16_4xb256-1000e_cifar100-224px': (
        *('AdamW', 1e-5, 0.05, 1024, 1000, 1e-5, SMOOTHED, 0.8, 1, (0, 0.1)),
    ),
    'deit/deit-base-distilled-p16_4xb256-360e_inat18-224px': (
        *('AdamW', 1e-4, 0.05, 1024, 360, 1e-5, SMOOTHED, 0.8, 1, (0, 0.1)),
    ),
    'cait/cait-xxs24-p16_4xb256-400e_imagenet-224px': (
        *('AdamW', 1e-3, 0.05, 1024, 400, 1e-5, SMOOTHED, 0.8, 1, 0.05),
    ),
    'resmlp/resmlp-s12-p16_4xb256-400e_imagenet-224px': (
        *('Lamb', 5e-3, 0.2, 1024, 400, 1e-5, SMOOTHED, 0.8, 1, 0.1),
    ),
    'patchconvnet/patchconvnet-s60_8xb256-400e_imagenet-224px': (
        *('Lamb', 3e-3, 0.01, 2048, 400, 1e-5, SMOOTHED, 0.8, 1, 0.15),
    ),
    'patchconvnet/patchconvnet-s60_8xb128-10e_imagenet-384px': (
        *('Lamb', 1e-5, 0.01, 1024, 10, 1e-5, SMOOTHED, 0.8, 1, 0.05),
    ),
    'patchconvnet/patchconvnet-s60_8xb256-90e_imagenet21k-224px': (
        *('Lamb', 3e-3, 0.01, 2048, 90, 1e-5, SMOOTHED, 0.8, 1, 0.15),
    ),
    'patchconvnet/patchconvnet-s60_8xb128-100e_imagenet-384px': (
        *('Lamb', 5e-4, 0.01, 1024, 100, 1e-5, SMOOTHED, 0.8, 1, 0.05),
    ),
    'parallel/par-vit-small-18x2-p16_8xb256-300e_imagenet-224px': (
        *('Lamb', 4e-3, 0.02, 2048, 300, 1e-6, BCE, 0.1, 1, 0.05),
    ),
    'parallel/par-vit-tiny-6x2-hmlp-p16_8xb256-300e_imagenet-224px': (
        *('Lamb', 4e-3, 0.02, 2048, 300, 1e-6, BCE, 0.1, 1, 0),
    ),
    'deit3/deit3-small-p16_8xb256-400e_imagenet-224px': (
        *('Lamb', 3e-3, 0.02, 2048, 400, 1e-5, BCE, 0.8, 1, 0),
    ),
    'deit3/deit3-base-p16_8xb256-800e_imagenet-192px': (
        *('Lamb', 3e-3, 0.05, 2048, 800, 1e-5, BCE, 0.8, 1, 0.2),
    ),
    'deit3/deit3-base-p16_8xb64-20e_imagenet-224px': (
        *('AdamW', 1e-5, 0.1, 512, 20, 1e-5, SMOOTHED, 0.8, 1, 0.2),
    ),
    'deit3/deit3-base-p16_8xb256-90e_imagenet21k-224px': (
        *('Lamb', 3e-3, 0.02, 2048, 90, 1e-5, SMOOTHED, None, 1, 0.1),
    ),
    'deit3/deit3-base-p16_8xb256-50e_imagenet-224px': (
        *('Lamb', 3e-4, 0.02, 2048, 50, 1e-5, SMOOTHED, None, 1, 0.15),
    ),
}
TOKENS = ('cls_token', 'dist_token', 'pos_embed')


class Parameters(torch.nn.Module):
    """Parameters with and without weight decay."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        for name in TOKENS:
            self.register_parameter(name, torch.nn.Parameter(torch.ones(1, 2)))


def each(table):
    return pytest.mark.parametrize(
        'name, recipe', table.items(), ids=lambda given: str(given)[:60]
    )


@pytest.fixture(autouse=True)
def scope():
    init_default_scope('mmpretrain')


def path_of(name):
    return FOLDER / f'{name}.py'


@each(RECIPES)
def test_recipe_optimizer_and_learning_rate_per_epoch(name, recipe):
    kind, rate, decay, batch, epochs, last, *_ = recipe
    cfg = read(path_of(name))
    count = int(name.split('_')[1].split('xb')[0])
    assert count * cfg.train_dataloader.batch_size == batch
    assert cfg.auto_scale_lr.base_batch_size == batch
    assert cfg.train_cfg.max_epochs == epochs and f'-{epochs}e_' in name
    model = Parameters()
    wrapper = build_optim_wrapper(model, deepcopy(cfg.optim_wrapper))
    assert type(wrapper.optimizer).__name__ == kind
    by_id = {id(p): g for g in wrapper.param_groups for p in g['params']}
    for key, parameter in model.named_parameters():
        plain = parameter.dim() == 1 or key.endswith(TOKENS)
        assert by_id[id(parameter)]['weight_decay'] == (0 if plain else decay)
    groups = wrapper.optimizer.param_groups
    assert {group['lr'] for group in groups} == {rate}
    del groups[1:]  # all groups have the same rate
    (schedule,) = cfg.param_scheduler
    schedule = PARAM_SCHEDULERS.build(
        deepcopy(schedule), default_args=dict(optimizer=wrapper)
    )
    for epoch in range(epochs):
        expected = (
            last + (rate - last) * (1 + math.cos(math.pi * epoch / epochs)) / 2
        )
        if epoch < 5:
            expected = 1e-6 + (rate - 1e-6) * epoch / 5
        assert groups[0]['lr'] == pytest.approx(expected), epoch
        wrapper.optimizer.step()
        schedule.step()


@each(RECIPES)
def test_recipe_loss_mixing_and_stochastic_depth(name, recipe):
    *_, loss, mixup, cutmix, depth = recipe
    cfg, model = read(path_of(name)), build(path_of(name))
    assert type(model.head.loss_module).__name__ == loss
    found = {}
    for augment in cfg.model.train_cfg.augments:
        built = BATCH_AUGMENTS.build(dict(augment))
        found[type(built).__name__] = built.alpha
    assert found == {
        k: v for k, v in dict(Mixup=mixup, CutMix=cutmix).items() if v
    }
    layers = model.backbone.layers
    rates = [
        {m.drop_prob for m in layer.modules() if isinstance(m, DropPath)}
        or {0.0}
        for layer in layers
    ]
    ends = depth if isinstance(depth, tuple) else (depth, depth)
    expected = np.linspace(*ends, len(layers))
    for of_layer, rate in zip(rates, expected, strict=True):
        assert np.allclose(sorted(of_layer), rate)


# test resize and crop size; training steps between loading and packing
FLIP, RANDAUGMENT = 'RandomFlip', 'RandAugment'
DEIT = ('RandomResizedCrop', FLIP, RANDAUGMENT, 'RandomErasing')
A2 = ('RandomResizedCrop', FLIP, RANDAUGMENT)
THREE = (FLIP, 'RandomChoice', 'ColorJitter')
SRC = ('ResizeEdge', 'NumpyToPIL', 'torchvision/RandomCrop', 'PILToNumpy')
DATA = {
    'imagenet_224': (256, 224, *DEIT),
    'imagenet_384': (438, 384, *DEIT),
    'imagenet-cait_224': (224, 224, *DEIT),
    'imagenet-cait_384': (384, 384, *DEIT),
    'imagenet-resmlp_224': (248, 224, *DEIT),
    'imagenet-patchconvnet_224': (224, 224, *A2),
    'imagenet-a2_224': (235, 224, *A2),
    'imagenet-deit3_224': (224, 224, 'RandomResizedCrop', *THREE),
    'imagenet-deit3-low_192': (192, 192, 'RandomResizedCrop', *THREE),
    'imagenet-src_224': (224, 224, *SRC, *THREE),
    'imagenet21k_224': (224, 224, *SRC, *THREE),
    'flowers-deit_224': (256, 224, *DEIT),
    'inat18-deit_224': (256, 224, *DEIT),
    'imagenet-patchconvnet_384': (384, 384, *A2),
    'imagenet21k-patchconvnet_224': (224, 224, *A2),
}


@pytest.mark.parametrize('name', DATA)
def test_recipe_training_and_test_pipelines(name):
    short, crop, *steps = DATA[name]
    settings = piece(f'datasets/{name}')
    pipeline = settings['train_dataloader']['dataset']['pipeline']
    assert [step['type'] for step in pipeline[1:-1]] == steps
    image = np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8)
    made = run(pipeline[1:-1], image)
    assert made.shape == (crop, crop, 3) and made.dtype == np.uint8
    pipeline = settings['test_dataloader']['dataset']['pipeline']
    assert run(pipeline[1:2], image).shape == (short, int(short * 1.5), 3)
    assert run(pipeline[1:-1], image).shape == (crop, crop, 3)


def run(steps, image):
    """Apply some pipeline steps to an image."""
    results = dict(img=image.copy(), img_shape=image.shape[:2])
    return Compose([TRANSFORMS.build(dict(s)) for s in steps])(results)['img']


def test_three_augment_applies_exactly_one():
    steps = piece('datasets/imagenet-deit3_224')['three_augment']
    image = np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8)
    gray = (image @ np.array([0.114, 0.587, 0.299])).astype(np.uint8)
    solarized = np.where(image < 128, image, 255 - image)
    choice = Compose([TRANSFORMS.build(dict(steps[1]))])
    counts = dict(gray=0, solarized=0, blurred=0)
    for _ in range(300):
        made = choice(dict(img=image.copy()))['img']
        is_gray = (made == gray[..., None]).all()
        is_solarized = (made == solarized).all()
        assert not (made == image).all()
        kind = ('blurred', 'solarized', 'gray')[is_solarized + 2 * is_gray]
        counts[kind] += 1
    assert min(counts.values()) > 60  # a third each, 5 deviations wide


def test_simple_random_crop_is_a_window_in_the_reflected_image():
    steps = piece('datasets/imagenet-src_224')['train_pipeline'][1:5]
    image = np.random.default_rng(0).integers(0, 256, (224, 224, 3), np.uint8)
    padded = np.pad(image, ((4, 4), (4, 4), (0, 0)), mode='reflect')
    windows = np.lib.stride_tricks.sliding_window_view(
        padded, (224, 224), (0, 1)
    )
    found = {
        tuple(np.argwhere((windows == w).all((2, 3, 4)))[0])
        for w in (
            run(steps, image).transpose(2, 0, 1)[None, None] for _ in range(6)
        )
    }
    assert len(found) > 1


def test_distilled_recipe_has_a_regnet_teacher():
    model = build(
        path_of('deit/deit-tiny-distilled-p16_4xb256-300e_imagenet-224px')
    )
    teacher = model.teacher
    assert type(teacher.losses[0]).__name__ == 'DeiTDistillation'
    # torch 2.8 cannot build it on the meta device
    regnet = MODELS.build(deepcopy(teacher.config)).to('meta')
    with torch.device('meta'):
        scores = regnet.eval()(torch.zeros(1, 3, 224, 224))
    assert scores.shape == (1, 1000)
    total = sum(p.numel() for p in regnet.parameters())
    assert total == pytest.approx(83.6e6, rel=1e-3)


@pytest.mark.parametrize(
    'path', sorted(FOLDER.glob('*/*cifar*.py')), ids=lambda path: path.stem
)
def test_cifar_images_keep_their_channel_order(path):
    assert 'CIFAR100' in read(path).train_dataloader.dataset.type
    assert not build(path).data_preprocessor.to_rgb  # files are read as BGR
