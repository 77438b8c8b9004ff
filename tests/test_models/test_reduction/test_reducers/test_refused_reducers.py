# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Invalid settings of reducers and the cache."""

from math import nan

import pytest

from mmclca.registry import MODELS

NOT_INTEGERS = (-1, 1.5, '3', True, None)
REFUSED = dict(  # values by reducer and option; 196 patches, three stages
    TokenReducer=dict(
        keep_rate=(
            *(0, -0.5, 1.1, nan, None, True, '.5', (), (0.5,), [0.5] * 4),
            *([0.5, 2, 1], (0.5, '.5', 1), [0.5, False, 1]),
        )
    ),
    TopK=dict(
        num_tokens=(
            *((8, 4), [], 8, '842', (197, 4, 2), (8, 9, 2), (8, 4, 0)),
            *((8, -4, 2), (8, 4.0, 2), (8, '4', 2), (8, 4, True)),
        )
    ),
    ATC=dict(linkage=('ward',)),
    DiffRate=dict(
        merge_share=(2, -0.1),
        target=(-1,),
        loss_weight=(-1,),
        granularity=(0,),
    ),
    DPCKNN=dict(num_neighbors=(0, 197, *NOT_INTEGERS)),
    DynamicViT=dict(loss_weight=(-1,)),
    KMedoids=dict(num_iterations=NOT_INTEGERS),
    MCTF=dict(tau=((1, 2), (1, -2, 3)), pooling=('max',), variant=('ahead',)),
    PiToMe=dict(bsm=([True], [1, 0, 1]), margin=(0.5,)),
    PPT=dict(threshold=(-1, '3')),
    Sinkhorn=dict(eps=(0, -1.0, '1', nan), num_iterations=(0, *NOT_INTEGERS)),
    ToMe=dict(fuse=('sum',), early=('drop',)),
    CrossLayerCache=dict(num_tokens=NOT_INTEGERS, reduce_at=((),)),
)
COMBINED = (
    ('EViT', dict(keep_rate=1, num_tokens=(8, 4, 2)), 'num_tokens'),
    ('DiffRate', dict(prune=[8, 4, 2]), 'merge'),
    ('DiffRate', dict(prune=[4, 8, 2], merge=[4, 4, 2]), 'prune'),
    ('DiffRate', dict(prune=[8, 4, 2], merge=[4, 0, 2]), 'merge'),
    (
        'DiffRate',
        dict(prune=[8, 4, 2], merge=[6, 3, 2], keep_rate=0.5),
        'only one',
    ),
    ('DiffRate', dict(target=1.0, num_tokens=(8, 4, 2)), 'only one'),
    ('CrossLayerCache', dict(num_tokens=0, with_gap=False), 'num_tokens'),
)


@pytest.mark.parametrize(
    'name, options, named',
    [
        *(
            (name, {option: value}, option)
            for name, options in REFUSED.items()
            for option, values in options.items()
            for value in values
        ),
        *COMBINED,
    ],
    ids=str,
)
def test_reducer_is_refused_if_a_setting_is_invalid(name, options, named):
    with pytest.raises(ValueError, match=named) as error:
        MODELS.build(dict(type=f'mmclca.{name}', **options))
    assert '\n' not in str(error.value)
