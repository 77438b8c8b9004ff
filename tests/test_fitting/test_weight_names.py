# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names of weights in timm, and of missing files."""

import pytest

from mmclca.checkpoints import downloading
from mmclca.checkpoints.error import CheckpointError, DownloadError
from mmclca.fitting.weights import find_weights

NAME = 'vit_tiny_patch16_224'


@pytest.mark.parametrize(
    'name, term',
    [
        *((NAME, f'timm://{NAME}'), (f'timm/{NAME}', f'timm://{NAME}')),
        (f'hf-hub:timm/{NAME}.augreg_in21k', f'timm://{NAME}.augreg_in21k'),
        (f'hf_hub:timm/{NAME}', f'timm://{NAME}'),
        (f'https://huggingface.co/timm/{NAME}', f'timm://{NAME}'),
        (f'hf-hub:someone/{NAME}', 'hub'),
        ('vit_tiny_patch16_225', f'timm://{NAME}'),
        ('timm/vit_tiny_patch16_225', f'timm://{NAME}'),
        ('gone.pth', 'gone.pth does not exist'),
        ('/folder/gone.pth', '/folder/gone.pth does not exist'),
    ],
)
def test_find_weights_names_the_address_if_no_file_exists(name, term):
    with pytest.raises(FileNotFoundError, match=term) as error:
        find_weights(name)
    assert 'mmclca fit' not in str(error.value)


def test_find_weights_names_its_option_if_a_download_fails(monkeypatch):
    def fail(name):
        raise DownloadError(f'cannot download {name}')

    monkeypatch.setattr(downloading, 'download_from_timm', fail)
    with pytest.raises(CheckpointError, match='`weights=') as error:
        find_weights(f'timm://{NAME}')
    assert 'cfg-options' not in str(error.value)


def test_message_is_one_line_if_a_download_fails(monkeypatch):
    def fail(name):
        raise OSError

    monkeypatch.setattr(downloading, '_ask_hub', fail)
    for name in (None, f'timm://{NAME}'):
        with pytest.raises(CheckpointError, match='create_model') as error:
            find_weights(name)
        assert '\n' not in str(error.value)
