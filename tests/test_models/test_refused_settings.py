# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Settings that cannot work are refused in one line, when models are built."""

import pytest
import toy_backbones  # noqa: F401, registers them
from small_models import CACHE, arch, classifier, vit

from mmclca.models import with_layer_fusion
from mmclca.registry import MODELS
from mmclca.utils.messages import ascending, integer, one_of

EVIT = dict(type='mmclca.EViT', keep_rate=0.5)
TOME = dict(reducer=dict(type='mmclca.ToMe', keep_rate=0.5), reduce_at=(1,))
HMLP = dict(type='mmclca.HMLPStem')
NO_CLS = dict(with_cls_token=False)
PROTECTED = dict(CACHE, protect_clr=True)
MISSPELT = dict(arch(2), embed_dim=16)
del MISSPELT['embed_dims']

DEIT = dict(type='mmclca.DeiTDistillation')
TAUGHT = dict(model='x', checkpoint='y', loss=DEIT)


@pytest.mark.parametrize('value', [0, -3, 7, 1.5, True, '2', None])
def test_what_is_no_integer_in_a_range(value):
    integer(most=6, depth=6)
    with pytest.raises(ValueError, match=f'depth={value!r} .* 1 to 6'):
        integer(most=6, depth=value)


@pytest.mark.parametrize(
    'given', [(6, 3), (3, 3), [3, 12], (3.5, 6), True, '3', (-1,)]
)
def test_layers_that_do_not_ascend(given):
    assert ascending('at', 3, 12) == ascending('at', [3], 12) == (3,)
    with pytest.raises(ValueError) as error:
        ascending('at', given, 12)
    said = 'must be ascending, different layers (integers) within 0 to 11'
    assert str(error.value) == f'at={given!r} {said}'


def test_a_name_that_is_not_known():
    one_of(('linear', 'uniform'), mode='linear')
    with pytest.raises(ValueError, match="mode: no 'lin.*linear.*; choose"):
        one_of(('linear', 'uniform'), mode='linea')


def refused(config, message):
    with pytest.raises(ValueError, match=message) as error:
        MODELS.build(config)
    assert '\n' not in str(error.value)


VIT = [
    (dict(arch='deit-tny'), r"^arch: no 'deit-tny' .*mean deit-tiny\?\); .*s"),
    (dict(arch=12), "^arch: no '12'; choose from s, small"),
    (dict(arch=MISSPELT), "'embed_dim' .*embed_dims"),
    (dict(arch=dict(arch(2), num_heads=7)), 'num_heads=7'),
    (dict(depth=13), 'depth=13 must be an integer, 1 to 12'),
    (dict(branches=0), 'branches=0 must be an integer, 1 or more'),
    (dict(num_registers=-1), 'num_registers=-1 must be an integer, 0 or more'),
    (dict(drop_path_mode='unifrom'), "no 'unifrom' .do you mean uniform"),
    (dict(branches=2, drop_rate=0.1), r'drop_rate=0\.1'),
    (dict(branches=2, layer_cfgs=dict(num_fcs=3)), 'two linear layers'),
    (dict(NO_CLS, dist_token=True), 'dist_token=True needs'),
    (dict(NO_CLS, out_type='cls_average'), 'needs a CLS token'),
    (dict(reduce_at=(6, 3)), r'reduce_at=\(6, 3\) must be ascending'),
    (dict(reducer=EVIT), r'mmclca.EViT .*reduce_at=\(\)'),
    (dict(cache=CACHE), r'cache with reduce_at=\(\)'),
    (
        dict(NO_CLS, cache=CACHE, reduce_at=(3,), out_type='featmap'),
        'copies of CLS: with_cls_token=False is not allowed',
    ),
    (dict(TOME, cache=PROTECTED), 'ToMe does not support protect_clr=True'),
    (dict(stem=HMLP), r'HMLPStem needs patch_size=16, found \(8, 8\)'),
    (
        dict(stem=dict(HMLP, norm_cfg=dict(type='LN')), patch_size=16),
        "dict.type='LN2d', eps=1e-6",
    ),
    (
        dict(stem=dict(HMLP, img_size=128), patch_size=16),
        r'grid of \(8, 8\), .*\(2, 2\).* img_size',
    ),
]


@pytest.mark.parametrize('options, message', VIT)
def test_vision_transformer(options, message):
    refused({**vit(), **options}, message)


OTHERS = dict(
    CaiT=dict(arch=arch(2), patch_size=8),
    ResMLP={},
    PatchConvNet=dict(arch=dict(embed_dims=48, num_layers=2)),
    AttentionPool=dict(in_channels=8),
    CLAHead=dict(num_classes=5, in_channels=8, num_layers=4),
    DistilledHead=dict(num_classes=5, in_channels=8),
    LayerFusionHead=dict(num_classes=5, in_channels=8, num_layers=3),
    NearestLinearHead=dict(num_classes=5, in_channels=8),
)


@pytest.mark.parametrize(
    'kind, options, message',
    [
        ('CaiT', dict(num_class_layers=0), 'num_class_layers=0 must be'),
        ('CaiT', dict(cls_at=2), 'cls_at=2 must be an integer, 0 to 1'),
        ('CaiT', dict(cls_at=1, **TOME), 'cls_at=1 with reduce_at=.1,.'),
        ('CaiT', dict(TOME, cls_at=0, reducer=EVIT), 'EViT needs .* mixes'),
        ('CaiT', dict(TOME, cache=CACHE), 'copies of CLS: .*num_tokens=0'),
        ('ResMLP', dict(ending='cls'), "^ending: no 'cls'.*average, class_ml"),
        ('ResMLP', dict(communication='con'), r'^communication: .*mean conv'),
        ('ResMLP', dict(norm_cfg=dict(type='BN')), 'not supported in ResMLP'),
        ('PatchConvNet', dict(arch='s61'), "arch: no 's61'.*s60"),
        ('PatchConvNet', dict(arch=arch(2)), "no 'num_heads'"),
        ('PatchConvNet', dict(multiclass=True), 'multiclass=True must be an'),
        ('PatchConvNet', dict(pooling='max'), "pooling: no 'max'"),
        (
            'PatchConvNet',
            dict(pooling='average', multiclass=3),
            'multiclass=3',
        ),
        ('PatchConvNet', dict(num_heads=5), 'dims=48 .*num_heads=5'),
        ('PatchConvNet', dict(norm_cfg=dict(type='GN')), "norm_cfg: no 'GN'"),
        ('AttentionPool', dict(multiclass=0), 'multiclass=0 must be an integ'),
        ('CLAHead', dict(num_classes=0), 'num_classes=0 must be an integer'),
        ('CLAHead', dict(multiplier=1.5), 'multiplier=1.5 must be an integer'),
        ('DistilledHead', dict(fusion='logit'), r'mean logits\?\); choose'),
        ('LayerFusionHead', dict(num_parts=1.5), 'num_parts=1.5 must be an i'),
        (
            'LayerFusionHead',
            dict(in_channels=[8, 8]),
            'has 2 layers, but num_l',
        ),
        ('LayerFusionHead', dict(in_channels=[8, 0, 8]), 'in_channels=0 must'),
        ('NearestLinearHead', dict(num_references=0), 'num_references=0 must'),
    ],
)
def test_other_modules(kind, options, message):
    refused(
        dict(type=f'mmclca.{kind}', **{**OTHERS[kind], **options}), message
    )


DISTILLED = dict(dist_token=True)
TOY = dict(type='mmclca.ToyReducible', channels=16)
HEAD = dict(type='mmclca.DistilledHead', num_classes=5, in_channels=16)
FUSION = dict(type='mmclca.LayerFusionHead', num_layers=3)


@pytest.mark.parametrize(
    'backbone, head, message',
    [
        (vit(2), {}, 'use .*ViT with dist_token=True'),
        (TOY, {}, 'ToyReducible has no dist'),
        (vit(2, **DISTILLED), dict(in_channels=8), 'set in_channels=16'),
        *(
            (
                vit(2, out_type=out_type, **DISTILLED),
                dict(type=head),
                f'{head} does not use the distillation token .*DistilledHead',
            )
            for head, out_type in (
                ('LinearClsHead', 'cls_token'),
                ('VisionTransformerClsHead', 'prefix'),
                ('ArcFaceClsHead', 'prefix'),
            )
        ),
        (vit(2, **DISTILLED), dict(FUSION, num_layers=1), 'does not use the'),
        (vit(2, out_indices=(0, 1)), FUSION, 'out_indices'),
        (vit(1), dict(type='mmclca.PerClassHead'), 'AttentionPool'),
        (
            dict(vit(2), type='VisionTransformer'),
            dict(type='LinearClsHead'),
            'VisionTransformer is not a backbone for TokenReductionClassifier',
        ),
    ],
)
def test_heads_that_do_not_fit(backbone, head, message):
    refused(dict(classifier(backbone), head={**HEAD, **head}), message)


@pytest.mark.parametrize(
    'options, named',
    [
        (dict(out_indices=(1, 2)), r'num_layers=3\).*\(1, 2\) selects 2 of'),
        (
            dict(out_indices=(1, 3, -1)),
            r'num_layers=3\).*\(1, 3, 3\) selects 2',
        ),
        (dict(arch='deit-tiny'), 'in_channels=16.* set in_channels=192'),
        (dict(final_norm=True), r'set final_norm=False .*\(it is True\)'),
        (dict(out_type='avg_featmap'), "'avg_featmap'.* 'cls"),
    ],
)
def test_a_cla_head_that_does_not_fit(options, named):
    config = classifier(vit(4, reduce_at=(1, 2)), cla=True)
    config['backbone'].update(options)
    refused(config, named)


@pytest.mark.parametrize(
    'teacher, head, message',
    [
        (dict(TAUGHT, img_size=0), {}, 'img_size=0 must be an integer'),
        (TAUGHT, dict(type='ArcFaceClsHead'), 'ArcFaceClsHead'),
        *(
            (dict(TAUGHT, loss=dict(DEIT, **wrong)), {}, said)
            for wrong, said in (
                (dict(kind='hart'), "kind: no 'hart' .*mean hard.*hard, soft"),
                (dict(alpha=2), 'alpha=2 must be a number, 0 to 1'),
                (dict(tau=0), 'tau=0 must be a number'),
                (dict(reduction='sum'), "reduction: no 'sum'.*batchmean"),
                (
                    dict(type='mmclca.LogitDistillation', weight=-1),
                    'weight=-1 must be',
                ),
            )
        ),
    ],
)
def test_a_teacher_that_has_no_place(teacher, head, message):
    config = classifier(vit(3), teacher=teacher)
    config['head'].update(head)
    refused(config, message)


@pytest.mark.parametrize(
    'teacher', [{}, 'teacher.py', dict(TAUGHT, logits=1)], ids=str
)
def test_options_that_no_teacher_has(teacher):
    with pytest.raises(TypeError, match='Teacher'):
        MODELS.build(classifier(vit(3), teacher=teacher))


@pytest.mark.parametrize(
    'wrong, said',
    [
        (dict(layers=(12,)), 'within 0 to 11'),
        (dict(layers=()), 'is empty'),
        (dict(out_type='raw'), "out_type: no 'raw'"),
    ],
)
def test_layers_that_cannot_be_fused(wrong, said):
    with pytest.raises(ValueError, match=said):
        with_layer_fusion(classifier(vit()), **wrong)
