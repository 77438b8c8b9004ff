# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import mmcv
import numpy as np
import torch
from torch.testing import assert_close

from mmclca.models.reduction.trace import Appended, Kept, Unchanged
from mmclca.visualization import draw_survivors, survivor_maps
from mmclca.visualization.survivors import veil

# Four patches are tokens 1 to 4. The first reduction keeps patches 2 and 0
# and fuses 1 and 3; the second one, after two cached tokens came, keeps
# patch 0 alone.
TRACE = [
    Kept(
        index=torch.tensor([[0, 3, 1]]),
        mix=torch.tensor([[[0.0, 0.0, 0.3, 0.0, 0.2]]]),
    ),
    Appended(2),
    Kept(index=torch.tensor([[0, 2]])),
]


def test_maps_by_hand():
    first, second = survivor_maps(TRACE, 1, (2, 2))
    assert_close(first, torch.tensor([[[1.0, 0.3], [1.0, 0.2]]]))
    assert_close(second, torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]))


def test_veil_leaves_survivors_and_fades_the_others():
    image = np.zeros((8, 4, 3), np.uint8)
    faded = veil(image, torch.tensor([[1.0, 0.3], [0.0, 1.0]]))
    assert faded.shape == image.shape
    assert not faded[:4, :2].any() and not faded[4:, 2:].any()
    assert (faded[:4, 2:] > 150).all() and (faded[4:, :2] > 150).all()


def test_cluster_of_one_patch_in_dpc_knn_is_a_token_of_its_own():
    image = np.zeros((8, 4, 3), np.uint8)
    share = torch.tensor([[1 / (1 + 1e-6), 0.3], [0.0, 1 / (1 + 1e-6)]])
    assert not veil(image, share)[:4, :2].any()


def test_stage_without_a_reduction_has_a_map_too():
    trace = [Kept(index=torch.tensor([[0, 2, 4]])), Appended(1), Unchanged()]
    first, second = survivor_maps(trace, 1, (2, 2))
    assert_close(first, torch.tensor([[[0.0, 1.0], [0.0, 1.0]]]))
    assert_close(second, first)


def test_picture_has_a_row_an_image_and_a_column_a_stage(tmp_path):
    maps = [torch.ones(3, 2, 2), torch.zeros(3, 2, 2)]
    images = [np.full((16, 16, 3), 90, np.uint8)] * 3
    out = tmp_path / 'survivors.png'
    draw_survivors(images, maps, out, ['a', 'b', 'c'], ['one', 'two'])
    picture = mmcv.imread(out)
    height, width = picture.shape[:2]
    assert abs(height - width) < 0.15 * width  # three rows, three columns
    tiles = (picture == 90).all(-1)
    assert tiles[:, : width * 2 // 3].mean() > 0.5
    assert not tiles[:, width * 3 // 4 :].any()
