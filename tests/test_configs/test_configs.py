# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import re
from copy import deepcopy
from itertools import takewhile

import numpy as np
import pytest
from doc_pages import header_commands
from every_config import (
    BASELINES,
    CONFIGS,
    FAMILY,
    FOLDER,
    MODEL_PIECES,
    PRETRAINING,
    build,
    build_optimizer,
    each,
    metafile,
    piece,
    read,
)
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.runner import Runner
from mmpretrain.registry import TRANSFORMS
from PIL import Image
from tiny_run import ROOT, write_images

from mmclca.configs import read_config
from mmclca.models import (
    TokenReductionClassifier,
    TokenReductionViT,
    list_methods,
)
from mmclca.models.heads import CLAHead
from mmclca.registry import MODELS

RECIPE = [path for path in CONFIGS if '_1xb32-50e_' in path.name]
LEAF40 = FOLDER / (
    'clca/clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px.py'
)
PLAIN_LEAF40 = LEAF40.with_name(LEAF40.name.removeprefix('clca-'))
CUSTOM = LEAF40.with_name(LEAF40.name.replace('leaf40', 'custom'))
COTTON80 = FOLDER / (
    'clca/clca-evit-kr10_vit-base-p16_1xb32-50e_cotton80-448px.py'
)
PLAIN_COTTON80 = FOLDER / (
    'clca/evit-kr50_vit-base-p16_1xb32-50e_cotton80-448px.py'
)
TINY_PIECES = [
    FOLDER / f'_base_/models/{name}-p16.py'
    for name in ('deit3-tiny', 'par-vit-tiny-6x2')
]
DISTILLED = FOLDER / (
    'deit/deit-tiny-distilled-p16_4xb256-300e_imagenet-224px.py'
)
FAMILY_LEAF40 = [path for path in FAMILY if '_leaf40-' in path.stem]
METHODS = {method.lower(): method for method in list_methods()}


def header(path):
    """Return the comment at the start of a config."""
    lines = path.read_text().splitlines()
    return '\n'.join(takewhile(lambda line: line.startswith('#'), lines))


def test_each_method_has_a_base_config_and_a_clca_config():
    names = {path.stem for path in CONFIGS}
    for method, kind in METHODS.items():
        reducer = piece(f'models/clca-{method}_vit-base-p16')['model'][
            'backbone'
        ]['reducer']
        assert reducer == dict(type=f'mmclca.{kind}', keep_rate=0.5)
        rate = 'kr10' if kind == 'EViT' else 'kr50'
        assert (
            f'clca-{method}-{rate}_vit-base-p16_1xb32-50e_cotton80-448px'
        ) in names


def test_basenames_are_unique_and_lower_case():
    names = [path.name for path in FOLDER.rglob('*.py')]
    assert len(names) == len(set(names))
    assert all(name == name.lower() for name in names)


def test_header_has_command_and_counted_cost():
    for path in (*CONFIGS, *FAMILY, *BASELINES, *PRETRAINING):
        text = header(path)
        for word in ('Reproduces', 'Expected', 'Cost', 'Command'):
            assert f'\n# {word}: ' in text, path
        words = sum(header_commands(path), [])
        assert path.relative_to(ROOT).as_posix() in words
        cost = metafile()[path.stem]['Metadata']
        gmacs = f'{cost["FLOPs"] / 1e9:.2f} GMACs'
        params = f'{cost["Parameters"] / 1e6:.2f} M parameters'
        # ATS is counted on an image without edges, which keeps most tokens
        bound = 'at most ' if 'ats-' in path.stem else ''
        if path in PRETRAINING and re.search('_(in1k|leaves)-', path.stem):
            bound = 'of whole images '
        assert f'\n# Cost: {bound}{gmacs}, {params}' in text, path


def parts_of(path):
    """Split a name: CLCA parts, method, percent, backbone, data, size."""
    return re.fullmatch(
        r'(?:(clca|clc|cla)-)?(\w+)-kr(\d+)_([\w-]+)_1xb32-50e_'
        r'([\w-]+)-(\d+)px',
        path.stem,
    ).groups()


def made_of_pieces(parts, method, rate, backbone, data, size):
    """Compose the expected config from a name."""
    cfg = {
        **piece(f'models/clca-{method}_{backbone}'),
        **piece(f'datasets/{data}_{size}'),
        **piece('schedules/clca_50e'),
        **piece('default_runtime'),
    }
    vit, head = cfg['model']['backbone'], cfg['model']['head']
    vit['img_size'] = int(size)
    vit['reducer']['keep_rate'] = int(rate) / 100
    head['num_classes'] = cfg['num_classes']
    if parts not in ('clca', 'clc'):
        vit['cache'] = None
    if parts not in ('clca', 'cla'):
        vit.update(out_indices=-1, final_norm=True)
        del head['num_layers']
        head.update(type='VisionTransformerClsHead', init_cfg=None)
    return cfg


@pytest.mark.slow
def test_config_equals_its_base_configs():
    for path in RECIPE:
        expected = made_of_pieces(*parts_of(path))
        if path == CUSTOM:
            expected['train_cfg']['val_interval'] = 5
            expected['default_hooks']['checkpoint'].update(
                type='mmclca.AtomicCheckpointHook',
                save_best='accuracy/top1',
                keep_last_best=True,
            )
        if 'dinov3' in path.stem:  # timm's name for register tokens
            optimizer = expected['optim_wrapper']['paramwise_cfg']
            optimizer['custom_keys']['.reg_token'] = dict(decay_mult=0.0)
        assert read(path).to_dict() == expected, path


@pytest.mark.parametrize('path', [COTTON80, PLAIN_COTTON80])
def test_method_and_keep_rate_are_options_of_a_config(path):
    options = {
        'model.backbone.reducer.type': 'mmclca.ATS',
        'model.backbone.reducer.keep_rate': 0.7,
    }
    parts, _, _, _, data, size = parts_of(path)
    expected = made_of_pieces(parts, 'ats', 70, 'vit-base-p16', data, size)
    assert read_config(path, options).to_dict() == expected


@each(MODEL_PIECES[::3])
def test_base_model_has_reducer_cache_and_cla_head(path):
    model = build(path)
    assert type(model) is TokenReductionClassifier
    backbone, head = model.backbone, model.head
    assert type(backbone) is TokenReductionViT
    method = re.match(r'clca-(\w+)_', path.stem)[1]
    assert type(backbone.reducer).__name__ == METHODS[method]
    assert backbone.reducer.keep_rates == (0.5,) * 3
    assert backbone.cache is not None and not backbone.final_norm
    layers = (3, 6, 9) if len(backbone.layers) == 12 else (2, 4, 6)
    assert backbone.reduce_at == layers
    assert backbone.out_indices == [*layers, len(backbone.layers) - 1]
    assert type(head) is CLAHead


@each([*MODEL_PIECES[::9], *TINY_PIECES, DISTILLED, *FAMILY_LEAF40[::2]])
def test_biases_norms_and_tokens_have_no_weight_decay(path):
    model, recipe = build(path), read(path).get('optim_wrapper')
    recipe = recipe or read(LEAF40).optim_wrapper
    groups = build_optimizer(model, recipe).param_groups
    decay = {id(p): g['weight_decay'] for g in groups for p in g['params']}
    special = re.compile('(cls|dist|register)_token|pos_embed|cache.clr')
    for name, param in model.named_parameters():
        if param.requires_grad:
            free = param.ndim == 1 or special.search(name)
            assert decay[id(param)] == (0 if free else 0.05), name


def test_linear_head_has_pytorch_initialization():
    head = MODELS.build(deepcopy(read(PLAIN_LEAF40).model.head))
    head.init_weights()
    weight = head.layers.head.weight
    bound = weight.size(1) ** -0.5  # uniform
    assert bound * 0.99 < weight.abs().max() <= bound
    assert abs(weight.std() - bound / 3**0.5) < 0.05 * bound


def pipeline(path, split):
    steps = deepcopy(read(path))[f'{split}_dataloader'].dataset.pipeline
    return Compose([TRANSFORMS.build(step) for step in steps])


@pytest.fixture
def leaf(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (300, 500, 3), np.uint8)
    image = Image.fromarray(noise)
    image.save(tmp_path / 'leaf.png')
    return image, dict(img_path=str(tmp_path / 'leaf.png'), gt_label=0)


@pytest.mark.parametrize('path, size', [(LEAF40, 224), (COTTON80, 448)])
def test_pipeline_resizes_and_crops_squares(path, size, leaf):
    image, sample = leaf
    side, margin = int(size / 0.875), (int(size / 0.875) - size) // 2
    square = image.resize((side, side), Image.Resampling.BICUBIC)
    square = np.asarray(square)[..., ::-1].transpose(2, 0, 1)  # BGR
    middle = square[:, margin : margin + size, margin : margin + size]
    tested = pipeline(path, 'test')(dict(sample))['inputs'].numpy()
    assert (tested == middle).all()
    trained = pipeline(path, 'train')(dict(sample))['inputs']
    assert trained.shape == (3, size, size)


def write_lists(folder, per_class):
    """Write images and the lists for the custom config."""
    write_images(folder, per_class, size=40)
    classes = sorted(path.name for path in folder.iterdir())
    lines = [
        f'{image.relative_to(folder)} {classes.index(image.parent.name)}'
        for image in sorted(folder.rglob('*.png'))
    ]
    (folder / 'classes.txt').write_text('\n'.join(classes))
    (folder / 'train.txt').write_text('\n'.join(lines[::2]))
    (folder / 'val.txt').write_text('\n'.join(lines[1::2]))


def test_custom_config_trains_on_few_images(tmp_path, monkeypatch):
    """Only the model width and the number of epochs are changed."""
    monkeypatch.setenv('MMCLCA_DATA', str(tmp_path))
    write_lists(
        tmp_path / 'my_leaves', per_class=4
    )  # 8 images for batches of 32
    cfg = Config.fromfile(CUSTOM)
    cfg.model.backbone.arch = dict(
        embed_dims=24, num_layers=12, num_heads=2, feedforward_channels=48
    )
    cfg.merge_from_dict(
        {
            'model.head.in_channels': 24,
            'model.head.num_classes': 4,
            'train_cfg': dict(max_epochs=2, val_interval=1),
            'train_dataloader.num_workers': 0,
            'val_dataloader.num_workers': 0,
            'default_hooks.checkpoint.interval': 1,
            'load_from': None,
            'work_dir': str(tmp_path / 'work'),
        }
    )
    runner = Runner.from_cfg(cfg)
    runner.train()
    assert runner.iter == 2
    assert runner.message_hub.get_scalar('val/accuracy/top1').current() >= 0
    kept = sorted(path.name for path in (tmp_path / 'work').glob('*.pth'))
    assert len(kept) == 2
    assert kept[0].startswith('best_accuracy_top1_epoch_')
    assert kept[1] == 'epoch_2.pth'
