# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Loading plain ViT weights, and the initial last block."""

import numpy as np
import pytest
import torch
from timm.models import VisionTransformer

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.load import load
from mmclca.checkpoints.rename import rename_to_classifier
from mmclca.models import TokenReductionViT
from mmclca.models.baselines import FFVT, SIMTrans, TransFG

SIZES = dict(img_size=32, patch_size=8)
ARCH = dict(embed_dims=24, num_layers=3, num_heads=3, feedforward_channels=96)


@pytest.fixture
def plain():
    """A ViT from timm."""
    sizes = dict(embed_dim=24, depth=3, num_heads=3, num_classes=5)
    return VisionTransformer(**SIZES, **sizes)


def write_npz(path):
    """Random weights with the names in Google's release."""
    attn, mlp = 'MultiHeadDotProductAttention_1', 'MlpBlock_3/Dense'
    block = {
        **{
            f'LayerNorm_{n}/{x}': 24 for n in (0, 2) for x in ('scale', 'bias')
        },
        **{
            f'{attn}/{x}/kernel': (24, 3, 8) for x in ('query', 'key', 'value')
        },
        **{f'{attn}/{x}/bias': (3, 8) for x in ('query', 'key', 'value')},
        **{f'{attn}/out/kernel': (3, 8, 24), f'{attn}/out/bias': 24},
        **{f'{mlp}_0/kernel': (24, 96), f'{mlp}_0/bias': 96},
        **{f'{mlp}_1/kernel': (96, 24), f'{mlp}_1/bias': 24},
    }
    shapes = {
        **{'embedding/kernel': (8, 8, 3, 24), 'embedding/bias': 24},
        **{'head/kernel': (24, 5), 'head/bias': 5, 'cls': (1, 1, 24)},
        'Transformer/posembed_input/pos_embedding': (1, 17, 24),
        **{f'Transformer/encoder_norm/{x}': 24 for x in ('scale', 'bias')},
    }
    for i in range(3):
        place = f'Transformer/encoderblock_{i}'
        shapes |= {f'{place}/{name}': shape for name, shape in block.items()}
    draw = np.random.default_rng(0).normal
    weights = {name: draw(0, 0.3, shape) for name, shape in shapes.items()}
    np.savez(path, **{k: np.float32(x) for k, x in weights.items()})


def test_npz_weights_load_as_in_timm(plain, tmp_path):
    path = str(tmp_path / 'vit.npz')
    write_npz(path)
    plain.load_pretrained(path)
    model = TokenReductionViT(ARCH, **SIZES)
    load(model, path, strict=False)
    x = torch.randn(2, 3, 32, 32)
    expected = plain.eval().forward_features(x)[:, 0]
    torch.testing.assert_close(model.eval()(x)[0], expected)


def test_npz_without_weights_is_refused(tmp_path):
    np.savez(tmp_path / 'numbers.npz', numbers=np.zeros(3))
    with pytest.raises(CheckpointError, match='cannot be opened'):
        load(FFVT(ARCH, **SIZES), str(tmp_path / 'numbers.npz'), strict=False)


@pytest.mark.parametrize('last_block', ['new', 'pretrained'])
def test_last_block_after_loading_plain_weights(last_block, plain, tmp_path):
    model = SIMTrans(ARCH, **SIZES, last_block=last_block)
    before = model.last_layers[0].attn.qkv.weight.detach().clone()
    own = plain.state_dict()
    torch.save(own, tmp_path / 'plain.pth')
    load(model, str(tmp_path / 'plain.pth'), strict=False)
    new = last_block == 'new'
    expected = before if new else own['blocks.2.attn.qkv.weight']
    assert torch.equal(model.last_layers[0].attn.qkv.weight, expected)
    first = model.layers[1].attn.qkv.weight
    assert torch.equal(first, own['blocks.1.attn.qkv.weight'])
    # its own checkpoint overrides the option
    again = SIMTrans(ARCH, **SIZES)
    torch.save(model.state_dict(), tmp_path / 'own.pth')
    load(again, str(tmp_path / 'own.pth'), strict=False)
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
    load(again, str(tmp_path / 'plain.pth'), strict=False)


def without(model, start):
    own = model.state_dict()
    return {name: own[name] for name in own if not name.startswith(start)}


def test_weights_with_other_last_block_are_refused(plain, tmp_path):
    model = TransFG(ARCH, **SIZES)
    deeper = TransFG(dict(ARCH, num_layers=4), **SIZES).state_dict()
    lost = 'last_layers.0.ln1.bias'
    path = str(tmp_path / 'other.pth')
    for weights, message in (
        (without(plain, 'blocks.2.'), 'lack the last block'),
        (deeper, r'layers\.2\.ln1\.weight is'),
        (without(model, lost), f'1 parameters .*{lost} is missing'),
    ):
        torch.save(weights, path)
        with pytest.raises(CheckpointError, match=message) as error:
            load(model, path, strict=False)
        assert '\n' not in str(error.value)


def test_last_block_loads_if_ffn_names_contain_its_number():
    arch = dict(ARCH, num_layers=2)
    model = FFVT(arch, **SIZES, num_tokens=2, last_block='pretrained')
    model.load_state_dict(TokenReductionViT(arch, **SIZES).state_dict())


def test_rename_drops_unused_parameters():
    encoder = 'transformer.encoder.'
    dead = [
        'transformer.embeddings.struc_token',
        'transformer.embeddings.struct_head.1.weight',
        f'{encoder}part_structure.fc1.weight',
        f'{encoder}part_structure.struct_head_new.0.running_var',
    ]
    alive = ['part_head.4.bias', f'{encoder}part_structure.gcn.gc1.weight']
    weights = dict.fromkeys([*dead, *alive], torch.zeros(1))
    left_out = rename_to_classifier(weights, '')
    assert [*weights] == ['head.layers.4.bias', 'backbone.structure.gc1']
    assert len(left_out) == len(dead)


def test_rename_joins_query_key_and_value():
    start = 'transformer.encoder.layer.0.attn.'
    parts = ('value', 'query', 'key')
    weights = {f'{start}{x}.bias': torch.full((2,), ord(x[0])) for x in parts}
    rename_to_classifier(weights, '')
    joined = weights['backbone.layers.0.attn.qkv.bias']
    assert bytes(joined.tolist()) == b'qqkkvv'
