# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
from toy_backbones import ToyReducible


@pytest.mark.parametrize('name', ['embed_dims', 'out_indices'])
def test_missing_attribute_of_a_backbone_is_named(name):
    class Incomplete(ToyReducible):
        def set_reduction(self, **reduction):
            delattr(self, name)
            super().set_reduction(**reduction)

    with pytest.raises(ValueError, match=f'lacks {name}'):
        Incomplete()
