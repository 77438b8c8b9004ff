# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cross-patch matrices of ResMLP as maps, and their sparsity."""

import numpy as np
import pytest
import torch

from mmclca.models.backbones import ResMLP
from mmclca.visualization.cross_patch import (
    draw_cross_patch,
    rows_as_maps,
    sparsity,
)


def resmlp(depth=3, **settings):
    arch = dict(embed_dims=8, num_layers=depth)
    return ResMLP(arch, img_size=(16, 12), patch_size=4, **settings)


def test_sparsity_is_the_share_of_small_weights():
    weight = torch.tensor([[-4.0, 0.1, 0.0], [0.21, 1.0, -0.19]])
    assert sparsity(weight) == 0.5
    assert sparsity(weight, share=0.02) == pytest.approx(1 / 6)
    assert sparsity(torch.ones(3, 2)) == 0


def test_rows_as_maps_places_a_row_at_its_patch():
    grid, weight = (4, 3), torch.zeros(12, 12)
    # weight from the patch at (3, 0) to the patch at (1, 2)
    weight[1 * 3 + 2, 3 * 3 + 0] = 1.0
    maps = rows_as_maps(weight, grid, side=6)
    assert maps.shape == (4 * 5 - 1, 3 * 4 - 1)
    assert np.argwhere(maps == 1).tolist() == [[1 * 5 + 3, 2 * 4 + 0]]
    lines = np.isnan(maps)
    assert lines[4].all() and lines[:, 3].all() and not lines[:4, :3].any()


def test_rows_as_maps_selects_central_patches():
    weight = torch.arange(25.0)[:, None].expand(25, 25)
    maps = rows_as_maps(weight, (5, 5), side=3)
    rows = maps[2::6, 2::6]
    assert rows.tolist() == [[6, 7, 8], [11, 12, 13], [16, 17, 18]]


@pytest.mark.parametrize(
    'backbone, layers, term',
    [
        (resmlp(), (3,), 'layers=3'),
        (resmlp(token_mixer='conv'), None, 'ResMLP'),
        (resmlp().fuse(), None, 'ResMLP'),
        (torch.nn.Identity(), None, 'ResMLP'),
    ],
)
def test_other_layers_and_backbones_are_refused(backbone, layers, term):
    with pytest.raises(ValueError, match=term):
        draw_cross_patch(backbone, 'x.png', layers)
