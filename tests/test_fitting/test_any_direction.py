# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""fit for photos in any direction."""

import pytest
import torch
from PIL import Image
from tiny_photos import write_photos, write_weights

from mmclca.apis import TokenReductionInferencer
from mmclca.models.heads import nearest_of_others


@pytest.fixture(scope='module')
def folder(tmp_path_factory, fit):
    """Folder with photos, and models with and without the option."""
    folder = tmp_path_factory.mktemp('turned')
    write_photos(folder)
    write_weights(folder)
    fit(folder)
    fit(folder, folder / 'any', any_direction=True)
    return folder


@pytest.mark.slow
def test_training_photos_are_recognized_in_all_directions(folder):
    path = next((folder / 'photographs').rglob('*.png'))
    turned = []
    for quarters in range(4):
        turned.append(str(folder / f'{quarters}.png'))
        image = Image.open(path)
        image.rotate(90 * quarters, expand=True).save(turned[-1])
    similarities = {
        name: [
            x['known_score']
            for x in TokenReductionInferencer(folder / name)(turned)
        ]
        for name in ('model', 'any')
    }
    upright, *turned = zip(*similarities.values(), strict=True)
    assert upright == pytest.approx((1, 1), abs=1e-4)
    # resized noise differs slightly after a turn
    assert all(with_turned > before for before, with_turned in turned)
    assert min(similarities['any']) > 0.95


def test_first_references_are_compared_with_all_of_other_images():
    features = torch.eye(6).view(3, 2, 6)
    features[2, 1] = features[0, 0]
    splits = [([1], [0]), ([2], [0])]
    similarity = nearest_of_others(features, splits)
    assert similarity[0].tolist()[0] == 0 and similarity[1].tolist()[0] == 1
    assert similarity[:, 1:].isnan().all()
