# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Models refuse unsupported settings in one line, when they are built."""

from math import nan

import pytest
import toy_backbones  # noqa: F401, registers them
from small_models import CACHE, arch, classifier, vit
from toy_reducers import shape

from mmclca.models import with_layer_fusion
from mmclca.registry import MODELS
from mmclca.utils.messages import check_ascending, check_integer


@pytest.mark.parametrize('value', [0, 7, 1.5, True, '2', None])
def test_integer_refuses_value(value):
    check_integer(maximum=6, depth=6)
    with pytest.raises(ValueError, match=f'depth={value!r} .* 1 to 6'):
        check_integer(maximum=6, depth=value)


@pytest.mark.parametrize('given', [(6, 3), (3, 3), [3, 12], (3.5,), '3', -1])
def test_ascending_refuses_layers(given):
    assert (
        check_ascending('at', 3, 12) == check_ascending('at', [3], 12) == (3,)
    )
    with pytest.raises(ValueError, match='^at=.* 0 to 11$'):
        check_ascending('at', given, 12)


RATES = (
    *(0, -0.5, 1.1, nan, None, True, '.5', (0.5,), [0.5] * 4),
    *([0.5, 2, 1], (0.5, '.5', 1), [0.5, False, 1]),
)
COUNTS = (
    *((8, 4), 8, '842', (197, 4, 2), (8, 9, 2), (8, 4, 0)),
    *((8, 4.0, 2), (8, '4', 2), (8, 4, True)),
)
STEPS = dict(prune=[8, 4, 2])
REDUCERS = [  # 196 patches, three stages
    *(('TokenReducer', dict(keep_rate=rate), 'keep_rate') for rate in RATES),
    *(('TopK', dict(num_tokens=counts), 'num_tokens') for counts in COUNTS),
    ('ATC', dict(linkage='ward'), 'linkage'),
    ('DiffRate', dict(merge_share=2), 'merge_share'),
    ('DiffRate', dict(target=-1), 'target'),
    ('DiffRate', dict(loss_weight=-1), 'loss_weight'),
    ('DiffRate', dict(granularity=0), 'granularity'),
    ('DiffRate', STEPS, 'merge'),
    ('DiffRate', dict(prune=[4, 8, 2], merge=[4, 4, 2]), 'prune'),
    ('DiffRate', dict(STEPS, merge=[4, 0, 2]), 'merge'),
    ('DiffRate', dict(STEPS, merge=[6, 3, 2], keep_rate=0.5), 'only one'),
    ('DiffRate', dict(target=1.0, num_tokens=(8, 4, 2)), 'only one'),
    ('DPCKNN', dict(num_neighbors=0), 'num_neighbors'),
    ('DPCKNN', dict(num_neighbors=197), 'num_neighbors'),
    ('DynamicViT', dict(loss_weight=-1), 'loss_weight'),
    ('DynamicViT', dict(backbone=shape(embed_dims=10)), 'embed_dims=10'),
    ('EViT', dict(keep_rate=1, num_tokens=(8, 4, 2)), 'num_tokens'),
    ('KMedoids', dict(num_iterations=-1), 'num_iterations'),
    ('MCTF', dict(tau=(1, 2)), 'tau'),
    ('MCTF', dict(tau=(1, -2, 3)), 'tau'),
    ('MCTF', dict(pooling='max'), 'pooling'),
    ('MCTF', dict(variant='ahead'), 'variant'),
    ('PiToMe', dict(bsm=[True]), 'bsm'),
    ('PiToMe', dict(bsm=[1, 0, 1]), 'bsm'),
    ('PiToMe', dict(margin=0.5), 'margin'),
    ('PPT', dict(threshold='3'), 'threshold'),
    ('Sinkhorn', dict(eps=0), 'eps'),
    ('Sinkhorn', dict(eps=nan), 'eps'),
    ('Sinkhorn', dict(num_iterations=0), 'num_iterations'),
    ('ToMe', dict(merge='sum'), 'merge'),
    ('ToMe', dict(early='drop'), 'early'),
    ('CrossLayerCache', dict(num_tokens=-1), 'num_tokens'),
    ('CrossLayerCache', dict(num_tokens=0, with_gap=False), 'num_tokens'),
    ('CrossLayerCache', dict(reduce_at=()), 'reduce_at'),
]
TOME = dict(reducer=dict(type='mmclca.ToMe', keep_rate=0.5), reduce_at=(1,))
HMLP = dict(type='mmclca.HMLPStem')
NO_CLS = dict(with_cls_token=False)
EVIT = dict(type='mmclca.EViT', keep_rate=0.5)
PROTECTED = dict(CACHE, protect_clr=True)
MISSPELT = dict(arch(2), embed_dim=16)
del MISSPELT['embed_dims']
VIT = [
    (dict(arch='deit-tny'), 'deit-tiny'),
    (dict(arch=12), "arch: no '12'"),
    (dict(arch=MISSPELT), 'embed_dims'),
    (dict(arch=dict(embed_dims=16)), 'num_layers'),
    (dict(arch=dict(arch(2), num_heads=7)), 'num_heads=7'),
    (dict(depth=13), 'depth=13'),
    (dict(branches=0), 'branches=0'),
    (dict(num_registers=-1), 'num_registers=-1'),
    (dict(drop_path_mode='unifrom'), 'drop_path_mode'),
    (dict(branches=2, drop_rate=0.1), 'drop_rate'),
    (dict(branches=2, layer_cfgs=dict(num_fcs=3)), 'two linear layers'),
    (dict(NO_CLS, dist_token=True), 'dist_token'),
    (dict(NO_CLS, out_type='cls_average'), 'cls_average'),
    (dict(reduce_at=(6, 3)), 'reduce_at='),
    (dict(reducer=EVIT), 'reduce_at='),
    (dict(cache=CACHE), 'reduce_at='),
    (
        dict(NO_CLS, cache=CACHE, reduce_at=(3,), out_type='featmap'),
        'with_cls_token',
    ),
    (dict(TOME, cache=PROTECTED), 'protect_clr'),
    (dict(stem=HMLP), 'patch_size=16'),
    (dict(stem=dict(HMLP, norm_cfg=dict(type='LN')), patch_size=16), 'LN2d'),
    (dict(stem=dict(HMLP, img_size=128), patch_size=16), 'img_size'),
]
SMALL = dict(
    CaiT=dict(arch=arch(2), patch_size=8),
    PatchConvNet=dict(arch=dict(embed_dims=48, num_layers=2)),
    AttentionPool=dict(in_channels=8),
    CLAHead=dict(num_classes=5, in_channels=8, num_layers=4),
    DistilledHead=dict(num_classes=5, in_channels=8),
    LayerFusionHead=dict(num_classes=5, in_channels=8, num_layers=3),
    NearestLinearHead=dict(num_classes=5, in_channels=8),
)
OTHERS = [
    ('CaiT', dict(num_class_layers=0), 'num_class_layers'),
    ('CaiT', dict(cls_at=2), 'cls_at=2'),
    ('CaiT', dict(cls_at=1, **TOME), 'reduce_at'),
    ('CaiT', dict(TOME, cls_at=0, reducer=EVIT), 'EViT'),
    ('CaiT', dict(TOME, cache=CACHE), 'num_tokens=0'),
    ('ResMLP', dict(pooling='cls'), 'pooling'),
    ('ResMLP', dict(token_mixer='con'), 'token_mixer'),
    ('ResMLP', dict(norm_cfg=dict(type='BN')), 'norm_cfg'),
    ('PatchConvNet', dict(arch='s61'), 's60'),
    ('PatchConvNet', dict(arch=arch(2)), 'num_heads'),
    ('PatchConvNet', dict(multiclass=True), 'multiclass=True'),
    ('PatchConvNet', dict(pooling='max'), 'pooling'),
    ('PatchConvNet', dict(pooling='average', multiclass=3), 'multiclass=3'),
    ('PatchConvNet', dict(num_heads=5), 'num_heads=5'),
    ('PatchConvNet', dict(norm_cfg=dict(type='GN')), 'norm_cfg'),
    ('AttentionPool', dict(multiclass=0), 'multiclass=0'),
    ('ThresholdedBCE', dict(threshold=2), 'threshold=2'),
    ('CLAHead', dict(num_classes=0), 'num_classes=0'),
    ('CLAHead', dict(multiplier=1.5), 'multiplier=1.5'),
    ('DistilledHead', dict(output='logit'), 'logits'),
    ('LayerFusionHead', dict(num_parts=1.5), 'num_parts=1.5'),
    ('LayerFusionHead', dict(in_channels=[8, 8]), 'in_channels|num_layers'),
    ('LayerFusionHead', dict(in_channels=[8, 0, 8]), 'in_channels=0'),
    ('NearestLinearHead', dict(num_references=0), 'num_references=0'),
]
DISTILLED = dict(dist_token=True)
TOY = dict(type='mmclca.ToyReducible', channels=16)
HEAD = dict(type='mmclca.DistilledHead', num_classes=5, in_channels=16)
FUSION = dict(type='mmclca.LayerFusionHead', num_layers=3)
HEADS = [
    (vit(2), {}, 'dist_token=True'),
    (TOY, {}, 'ToyReducible'),
    (vit(2, **DISTILLED), dict(in_channels=8), 'in_channels=16'),
    (vit(2, **DISTILLED), dict(type='LinearClsHead'), 'DistilledHead'),
    (
        vit(2, out_type='prefix', **DISTILLED),
        dict(type='VisionTransformerClsHead'),
        'DistilledHead',
    ),
    (
        vit(2, out_type='prefix', **DISTILLED),
        dict(type='ArcFaceClsHead'),
        'DistilledHead',
    ),
    (vit(2, **DISTILLED), dict(FUSION, num_layers=1), 'DistilledHead'),
    (vit(2, out_indices=(0, 1)), FUSION, 'out_indices'),
    (vit(1), dict(type='mmclca.PerClassHead'), 'AttentionPool'),
    (
        dict(vit(2), type='VisionTransformer'),
        dict(type='LinearClsHead'),
        'VisionTransformer',
    ),
]
CLA = [
    (dict(out_indices=(1, 2)), 'selects 2'),
    (dict(out_indices=(1, 3, -1)), 'selects 2'),
    (dict(arch='deit-tiny'), 'in_channels=192'),
    (dict(final_norm=True), 'final_norm=False'),
    (dict(out_type='avg_featmap'), 'avg_featmap'),
]
DEIT = dict(type='mmclca.DeiTDistillation')
TAUGHT = dict(model='x', checkpoint='y', loss=DEIT)
TEACHERS = [
    (dict(TAUGHT, img_size=0), 'img_size=0'),
    (dict(TAUGHT, loss=dict(DEIT, kind='hart')), 'kind'),
    (dict(TAUGHT, loss=dict(DEIT, alpha=2)), 'alpha=2'),
    (dict(TAUGHT, loss=dict(DEIT, tau=0)), 'tau=0'),
    (dict(TAUGHT, loss=dict(DEIT, reduction='sum')), 'reduction'),
    (
        dict(TAUGHT, loss=dict(type='mmclca.LogitDistillation', weight=-1)),
        'weight=-1',
    ),
]


def cla_model(options):
    config = classifier(vit(4, reduce_at=(1, 2)), cla=True)
    config['backbone'].update(options)
    return config


def arcface_student():
    config = classifier(vit(3), teacher=TAUGHT)
    config['head'].update(type='ArcFaceClsHead')
    return config


def small(kind, options):
    return {'type': f'mmclca.{kind}', **SMALL.get(kind, {}), **options}


def headed(backbone, head):
    return dict(classifier(backbone), head={**HEAD, **head})


@pytest.mark.parametrize(
    'config, term',
    [
        *((vit() | options, term) for options, term in VIT),
        *((small(*case), term) for *case, term in (*REDUCERS, *OTHERS)),
        *((headed(*parts), term) for *parts, term in HEADS),
        *((cla_model(options), term) for options, term in CLA),
        *((classifier(vit(3), teacher=t), term) for t, term in TEACHERS),
        (arcface_student(), 'ArcFaceClsHead'),
    ],
)
def test_build_refuses_config(config, term):
    with pytest.raises(ValueError, match=term) as error:
        MODELS.build(config)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('teacher', [{}, 'teacher.py'])
def test_build_refuses_unknown_teacher_options(teacher):
    with pytest.raises(TypeError, match='Teacher'):
        MODELS.build(classifier(vit(3), teacher=teacher))


@pytest.mark.parametrize(
    'wrong, term',
    [
        (dict(layers=(12,)), '0 to 11'),
        (dict(layers=()), 'empty'),
        (dict(out_type='raw'), 'out_type'),
    ],
)
def test_with_layer_fusion_refuses_options(wrong, term):
    with pytest.raises(ValueError, match=term):
        with_layer_fusion(classifier(vit()), **wrong)
