# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
from tiny_photographs import write_weights

from mmclca.checkpoints.error import CheckpointError
from mmclca.fitting import weights
from mmclca.fitting.weights import DEFAULT, PIXELS, find_weights, pixels_of


@pytest.mark.parametrize(
    'name, pixels',
    [
        ('deit_tiny_patch16_224', 'imagenet'),
        ('deit_tiny_patch16_224-a1311bcf', 'imagenet'),
        ('vit_tiny_patch16_224', 'half'),
        ('vit_tiny_patch16_224.augreg_in21k_ft_in1k', 'half'),
    ],
)
def test_pixels_by_the_name_of_the_weights(name, pixels):
    assert pixels_of(name) == (PIXELS[pixels], '')


def test_pixels_of_an_unknown_name_are_said():
    found, note = pixels_of('best_epoch_7')
    assert found == PIXELS['imagenet']
    assert 'best_epoch_7' in note and '--pixels half' in note
    assert pixels_of('best_epoch_7', 'half') == (PIXELS['half'], '')


def test_pixels_that_there_are_not():
    with pytest.raises(ValueError, match="'grey'.*imagenet"):
        pixels_of('x', 'grey')


def test_a_file_in_words(tmp_path):
    found = find_weights(str(write_weights(tmp_path)))
    assert '4 layers, 64 channels, patches of 32 px' in found.describe()
    assert found.backbone['patch_size'] == 32
    assert 'tiny is not in timm' in found.notes[0]


def test_the_default_that_cannot_be_had(monkeypatch):
    def missing(source):
        raise CheckpointError(source)

    monkeypatch.setattr(weights, 'open_checkpoint', missing)
    with pytest.raises(CheckpointError, match=f'timm://{DEFAULT}.*--weights'):
        find_weights()


def test_a_name_that_cannot_be_fetched_keeps_its_error():
    with pytest.raises(CheckpointError, match='no pretrained model'):
        find_weights('timm://deit_tinny')
