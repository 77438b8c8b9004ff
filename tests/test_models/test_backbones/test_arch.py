# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
from small_models import arch

from mmclca.models import TokenReductionViT

MISSPELT = dict(arch(2), embed_dim=16)
del MISSPELT['embed_dims']


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        (
            'deit-tny',
            r"^arch: no 'deit-tny' \(do you mean deit-tiny\?\); .*s, ",
        ),
        (12, "^arch: no '12'; there are s, small"),
        (MISSPELT, r"lacks embed_dims; no 'embed_dim' .*mean embed_dims\?\)"),
        (dict(arch(2), num_layer=3), r'\(do you mean num_layers\?\)'),
        (dict(arch(2), num_heads=7), 'num_heads=7 does not divide embed_d'),
        (dict(num_layers=2), 'lacks embed_dims, num_heads, feedforward_chan'),
    ],
)
@pytest.mark.parametrize('depth', [None, 1])
def test_what_is_misspelt_is_told(wrong, message, depth):
    with pytest.raises(ValueError, match=message) as error:
        TokenReductionViT(wrong, depth=depth)
    assert '\n' not in str(error.value)


def test_names_in_capitals_are_known():
    assert TokenReductionViT('DeiT-Tiny', depth=1).embed_dims == 192
