# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""CLCA with EViT at keep rate 0.1: each dataset with each backbone.

The expected base configs are written out here by hand; ``test_configs.py``
checks that configs equal the base configs in their names.
"""

from itertools import product

import pytest
from every_config import CONFIGS, FOLDER, metafile, piece, read

# classes
ULTRA_FINE = dict(cotton80=80, soylocal=200, soygene=1110, soyageing=198)
ULTRA_FINE |= {f'soyageing-r{stage}': 198 for stage in (1, 3, 4, 5, 6)}
ULTRA_FINE['soyglobal'] = 1938
# classes, type, folder, training split
FINE = {
    'cub': (200, 'CUB', 'CUB_200_2011', 'train'),
    'cars': (196, 'StanfordCars', 'Stanford_Cars', 'train'),
    'aircraft': (100, 'FGVCAircraft', 'fgvc-aircraft-2013b', 'trainval'),
    'flowers': (102, 'Flowers102', 'Flowers102', 'trainval'),
    'pets': (37, 'OxfordIIITPet', 'Oxford-IIIT_Pets', 'trainval'),
}
# pre-norm, bias of qkv, layer scale; weights: test_backbone_pieces.py
BACKBONES = {
    'vit-base-p16': (False, True, False),
    'deit-base-p16': (False, True, False),
    'deit3-base-p16': (False, True, True),
    'deit3-in21k-base-p16': (False, True, True),
    'miil-base-p16': (False, False, False),
    'mocov3-base-p16': (False, True, False),
    'dino-base-p16': (False, True, False),
    'mae-base-p16': (False, True, False),
    'clip-base-p16': (True, True, False),
}
CELLS = [*product(ULTRA_FINE, BACKBONES), *product(FINE, ['vit-base-p16'])]
CLASSES = ULTRA_FINE | {name: row[0] for name, row in FINE.items()}

RESIZE = dict(
    type='Resize', scale=(512, 512), backend='pillow', interpolation='bicubic'
)
LOAD = dict(type='LoadImageFromFile')
CACHED = dict(type='mmclca.CacheImages', transforms=[LOAD, RESIZE])
CENTER = dict(type='CenterCrop', crop_size=448)
PACK = dict(type='PackInputs')
PIPELINES = dict(
    train=[
        CACHED,
        dict(type='RandomCrop', crop_size=448),
        dict(type='RandomFlip', prob=0.5, direction='horizontal'),
        PACK,
    ],
    val=[CACHED, CENTER, PACK],
    test=[LOAD, RESIZE, CENTER, PACK],
)
SCHEDULE = dict(
    type='mmclca.WarmupCosineLR',
    T_max=45,
    warmup=2,
    start_factor=0.01,
    eta_min_ratio=0.1,
)


def path_of(data, backbone):
    name = f'clca-evit-kr10_{backbone}_1xb32-50e_{data}-448px.py'
    return FOLDER / 'clca' / name


def data_set(data, split):
    """Return the expected dataset without its pipeline."""
    if data in FINE:
        _, kind, folder, trained = FINE[data]
        named = dict(type=kind, data_root=f'data/{folder}')
    else:
        name, trained = data.replace('-', '_'), 'trainval'
        named = dict(type='mmclca.UltraFGVC', dataset=name, data_root='data')
    return dict(**named, split=trained if split == 'train' else 'test')


def test_each_dataset_and_backbone_has_one_config():
    listed = {path for path in CONFIGS if '/clca-evit-kr10_' in str(path)}
    assert listed == {path_of(*cell) for cell in CELLS}
    assert len(listed) == 10 * 9 + 5


@pytest.mark.parametrize('data', CLASSES)
def test_dataset_has_the_paper_pipeline(data):
    cfg = piece(f'datasets/{data}_448')
    assert cfg['num_classes'] == CLASSES[data]
    for split, pipeline in PIPELINES.items():
        dataset = cfg[f'{split}_dataloader']['dataset']
        assert dataset.pop('pipeline') == pipeline
        assert dataset == data_set(data, split)
    train, test = cfg['train_dataloader'], cfg['test_dataloader']
    assert (train['batch_size'], test['batch_size']) == (32, 48)
    assert train['sampler']['shuffle'] and not test['sampler']['shuffle']
    assert train['batch_sampler']['drop_last']


def test_schedule_equals_the_paper():
    cfg = read(path_of('cotton80', 'vit-base-p16'))
    optimizer = cfg.optim_wrapper.optimizer
    assert (optimizer.type, optimizer.lr) == ('AdamW', 1e-4)
    assert optimizer.weight_decay == 0.05
    assert cfg.param_scheduler == [SCHEDULE]
    assert cfg.train_cfg.max_epochs == 50
    assert cfg.randomness.seed == 1


def params_of(data, backbone):
    """Return the number of parameters, written as a sum."""
    pre_norm, qkv_bias, layer_scale = BACKBONES[backbone]
    classes, width = CLASSES[data], 768
    vit = 85_798_656 - 2 * width  # at 224 px, without the last norm
    vit += (
        784 - 196 + 2
    ) * width  # position embedding, CLR token and its position
    vit += width * (2 - 1) if pre_norm else 0  # replaces the patch bias
    vit += 12 * 2 * width if layer_scale else 0
    vit -= 0 if qkv_bias else 12 * 3 * width
    # BatchNorm, convolution over four layers, BatchNorm, classes
    head = (2 + 2 * (4 + 1) + 4) * width + (2 * width + 1) * classes
    return vit + head


def test_metafile_costs_equal_definition():
    for data, backbone in CELLS:
        listed = metafile()[path_of(data, backbone).stem]['Metadata']
        assert listed['Training Data'] == data
        assert listed['Parameters'] == params_of(data, backbone)
        assert round(listed['FLOPs'] / 1e9, 1) == 25.2  # the paper's Table I
