# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Refuse small files that exhaust memory or time, or open other files."""

import _codecs
import os
import re
import zipfile

import numpy as np
import pytest
import torch
from foreign_models import Call

from mmclca.apis import TokenReductionInferencer
from mmclca.checkpoints.digests import base_file
from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.gate.stored_config import read_stored_config
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.datasets.batches import build_dataset


@pytest.fixture(scope='module')
def text(tiny):
    """Config stored in the tiny checkpoint."""
    return (tiny / 'tiny.py').read_text()


CHANGES = {  # setting, new value, term in the error
    'layers': (r'num_layers=\d+', 'num_layers=10000000', 'num_layers'),
    'some layers': (r'num_layers=\d+', 'num_layers=4000', 'larger model'),
    'digits': (r'num_layers=\d+', f'num_layers={"9" * 400}', 'num_layers'),
    'float': (r'num_layers=\d+', 'num_layers=1e9', 'num_layers'),
    'infinite': (r'num_layers=\d+', 'num_layers=inf', 'cannot build'),
    'channels': (r'embed_dims=\d+', 'embed_dims=4000', 'larger model'),
    'image': (r'img_size=\d+', 'img_size=4096', 'larger model'),
    'patch': (r'patch_size=\d+', 'patch_size=0', 'ZeroDivision'),
    'scale': (r'scale=\(.*?\)', 'scale=30000', 'scale=30000'),
    'list': (r'num_layers=\d+', f'num_layers=[{"1," * 9999}]', 'num_layers'),
    'long': (r'\Z', f'x = [{"1," * 2000000}]', 'characters'),
    'signs': (r'\A[\s\S]*', 'x = ' + '-' * 90000 + '1', 'plain'),
    'brackets': (r'\Z', f'x = {"[" * 150}{"]" * 150}', 'deeply'),
}


@pytest.mark.parametrize('setting, new, term', CHANGES.values(), ids=CHANGES)
def test_stored_config_is_refused_if_model_is_larger(
    text, change, setting, new, term
):
    path = change(re.sub(setting, new, text, flags=re.DOTALL))
    with pytest.raises((CheckpointError, ValueError), match=term):
        read_stored_config(open_checkpoint(path))


def test_stored_config_opens_no_dataset(text, change, tmp_path):
    secret, fifo = tmp_path / 'secret.txt', tmp_path / 'fifo'
    secret.write_text('a\nb\nc\nd\n')
    os.mkfifo(fifo)  # reading would block forever
    files = f"dataset=dict(classes='{secret}', ann_file='{fifo}',"
    path = change(text.replace('dataset=dict(', files), dataset_meta=None)
    found = TokenReductionInferencer(path, device='cpu')
    assert found.classes == list('0123')
    for split in ('train', 'val', 'test'):
        with pytest.raises(ValueError, match='`config`'):
            build_dataset(found.model._config, split)


EXPANDED = torch.ones(1).expand(150000, 150000)
BOMBS = dict(
    bytearray=Call(bytearray, (2 * 10**9,)),
    encode=Call(_codecs.encode, (b'a', 'hex')),
    GB=dict(state_dict=dict(weight=EXPANDED)),
)


@pytest.mark.parametrize('old', [False, True])
@pytest.mark.parametrize('bomb', BOMBS)
def test_pickle_is_refused_if_memory_grows(bomb, old, tmp_path):
    path, zipped = tmp_path / 'evil.pth', not old
    torch.save(BOMBS[bomb], path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError, match=bomb):
        open_checkpoint(str(path))


def test_bytes_are_loaded(tmp_path):
    values = dict(state_dict={}, a=bytearray(b'a\xff'), b=b'b\xff')
    torch.save(values, tmp_path / 'w.pth')
    found = open_checkpoint(str(tmp_path / 'w.pth'))
    assert (found['a'], found['b']) == (b'a\xff', b'b\xff')


def test_archive_is_refused_if_its_parts_are_much_larger(tmp_path):
    torch.save({'a': torch.zeros(1_000_000)}, tmp_path / 'w.pth')
    compressed = zipfile.ZIP_DEFLATED
    with (
        zipfile.ZipFile(tmp_path / 'w.pth') as whole,
        zipfile.ZipFile(tmp_path / 'evil.pth', 'w', compressed) as bomb,
    ):
        for name in whole.namelist():
            bomb.writestr(name, whole.read(name))
    with pytest.raises(CheckpointError, match='unpack'):
        open_checkpoint(str(tmp_path / 'evil.pth'))


def test_npz_is_refused_if_its_model_is_larger_than_the_file(tmp_path):
    layer = 'Transformer/encoderblock_0/{}'
    arrays = {layer.format(i): np.zeros(1) for i in range(15)}
    arrays[layer.format('MultiHeadDotProductAttention_1/query/bias')] = (
        np.zeros((16, 1))
    )
    arrays['embedding/kernel'] = np.zeros((1, 1, 3, 16000), np.float32)
    arrays['Transformer/posembed_input/pos_embedding'] = np.zeros((1, 2, 1))
    arrays['head/bias'] = np.zeros(2)
    np.savez(tmp_path / 'evil.npz', **arrays)
    with pytest.raises(CheckpointError, match='larger model'):
        open_checkpoint(str(tmp_path / 'evil.npz'))


def test_base_is_refused_if_its_contents_have_another_hash(change, tmp_path):
    base = {'new': torch.zeros(2)}
    name = base_file(base)
    path = change('', base=name)
    torch.save(base, tmp_path / name)
    assert open_checkpoint(path)['state_dict']['new'].shape == (2,)
    torch.save({'new': torch.ones(2)}, tmp_path / name)
    for named in (name, 'evil.pth'):
        with pytest.raises(CheckpointError, match='hash'):
            open_checkpoint(change('', base=named))
