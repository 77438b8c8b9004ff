# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Invalid settings of pre-training models and layer teachers."""

import pytest
from small_models import CACHE, classifier, vit
from small_selfsup import ATTENTION, HIDDEN, MAE, distilled, encoder, mirl

from mmclca.registry import MODELS


def changed(part, **options):
    config = mirl(2)
    return dict(config, **{part: config[part] | options})


def taught(student, **teacher):
    """A classifier config with a teacher of layers."""
    teacher = dict(checkpoint='', loss=ATTENTION, **teacher)
    return dict(student, teacher=teacher)


REFUSED = (
    (encoder(num_segments=3), 'num_segments=3'),
    (encoder(num_segments=8), 'num_segments=8'),
    *((encoder(mask_ratio=x), f'mask_ratio={x}') for x in (0, None)),
    (encoder(stem=dict(type='mmclca.ConvStem')), 'ConvStem'),
    (encoder(arch=dict(embed_dims=16, num_layers=1)), 'num_heads'),
    (changed('head', mode='residuals'), 'mode'),
    (mirl(1, 'coarse2fine'), 'coarse2fine'),
    *((changed('head', size=x), f'size={x}') for x in (4, 65)),
    (changed('neck', did='last'), 'did'),
    (
        dict(MAE, neck=dict(MAE['neck'], decoder_num_heads=5)),
        'decoder_num_heads=5',
    ),
    (changed('neck', decoder_num_heads=5), 'decoder_num_heads=5'),
    (changed('neck', decoder_depth=0), 'decoder_depth=0'),
    (mirl(3), 'num_segments=3'),
    (mirl(4, num_layers=6), 'num_segments=4'),
    *(
        (distilled('', dict(ATTENTION, layers=x)), 'layer')
        for x in ((5,), (0,), (4, 4), ())
    ),
    (distilled('', dict(HIDDEN, layers=(-1,))), 'layer=-1'),
    (distilled('', dict(ATTENTION, adapter=False)), '2 heads'),
    (distilled('', dict(HIDDEN, adapter=False)), '16 channels'),
    (distilled('', dict(ATTENTION, weight=-1)), 'weight=-1'),
    (distilled('', dict(type='mmclca.DeiTDistillation')), 'model='),
    (distilled('', ATTENTION, backbone=encoder(patch_size=8)), 'patch_size'),
    (distilled('', ATTENTION, backbone=dict(type='ResNet')), 'ResNet'),
    (distilled('', ATTENTION, backbone='no-such-config'), 'no-such-config'),
    (
        taught(
            classifier(vit(4, cache=CACHE, reduce_at=(1,))), backbone=encoder()
        ),
        'TokenReductionClassifier',
    ),
    (taught(classifier(vit(4)), model=None), 'backbone='),
)


@pytest.mark.parametrize('config, named', REFUSED)
def test_model_is_refused_if_a_setting_is_invalid(config, named):
    with pytest.raises(ValueError, match=named) as error:
        MODELS.build(config)
    assert '\n' not in str(error.value)
