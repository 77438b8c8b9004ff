# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Rotary positions of tokens, by definition."""

import pytest
import torch
from installed import needs
from small_eva import OWN, small_eva
from small_timm import photos

import mmclca
from mmclca.models.reduced.rotary_angles import find_angles
from mmclca.models.reduction.rotary import Rotary
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Kept, Merged

ANGLES = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])  # (P, D / 2)


def rotary_tokens(half=True, keys='content'):
    """Three patches after CLS, with two heads of four channels."""
    pairs = torch.cat([ANGLES, ANGLES], -1)
    if not half:
        pairs = ANGLES.repeat_interleave(2, -1)
    rows = torch.cat([pairs.sin(), pairs.cos()], -1)[None, None]
    rotary = Rotary.with_rows(rows, num_prefix=1, half=half, keys=keys)
    x = torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(0))
    return Tokens(x, num_patches=3, rotary=rotary)


def angles(tokens):
    """Angles of all tokens, for the first pair of channels, (b, N)."""
    rotary = tokens.rotary
    turned = torch.tensor([1.0, 0.0, 0.0, 0.0])
    turned = rotary.rotate(turned.expand(1, 1, rotary.cosine.size(-2), 4))
    second = 2 if rotary.half else 1
    return torch.atan2(turned[..., second], turned[..., 0])[:, 0]


@pytest.mark.parametrize('half', [True, False])
def test_pairs_are_rotated_and_prefix_is_not(half):
    tokens = rotary_tokens(half)
    torch.testing.assert_close(
        angles(tokens), torch.tensor([[0.0, 0.1, 0.3, 0.5]])
    )
    x = tokens.features.unflatten(2, (2, 4)).transpose(1, 2)
    y = tokens.rotary.rotate(x)
    torch.testing.assert_close(y.norm(dim=-1), x.norm(dim=-1))
    assert y[:, :, 0].equal(x[:, :, 0])


def test_dropped_patch_takes_its_row_along():
    tokens = rotary_tokens().append(torch.zeros(2, 1, 8))
    left = tokens.keep(torch.tensor([[2, 3], [1, 0]]))
    expected = torch.tensor([[0.0, 0.5, 0.0], [0.0, 0.3, 0.1]])
    torch.testing.assert_close(angles(left), expected)


@pytest.mark.parametrize(
    ('weights', 'expected'),
    [([1, 1, 2, 1], 0.3), ([1, 1, 1, 1], 0.1), ([1, 1, 2, 2], 0.3)],
)
def test_merged_token_has_first_row_of_largest_member(weights, expected):
    tokens = rotary_tokens().replace(
        weight=torch.tensor([weights, weights]).float()
    )
    merged = tokens.merge_after_prefix(torch.zeros(2, 3).long(), 1)
    torch.testing.assert_close(
        angles(merged), torch.tensor([[0.0, expected]] * 2)
    )


def test_mixed_token_has_row_of_largest_member_with_a_position():
    tokens = rotary_tokens().append(torch.zeros(2, 1, 8))
    mix = torch.tensor([[0, 0.2, 0.3, 0.1, 0.4], [0, 0, 0, 0, 1]])
    index = torch.zeros(2, 1).long()
    left = tokens.reduce(Kept(index, mix.expand(2, -1, -1)))
    expected = torch.tensor([[0.0, 0.3, 0.0]] * 2)
    torch.testing.assert_close(angles(left), expected)


def test_member_without_weight_gives_no_row():
    tokens = rotary_tokens()
    target = torch.zeros(2, 4).long()
    share = torch.tensor([[1.0, 0, 0, 0]] * 2)
    assert not angles(tokens.reduce(Merged(target, share, 1))).any()


def test_mean_position_is_weighted_mean_of_coordinates():
    places = torch.tensor([[1.0, 0.0], [2.0, 0.0], [4.0, 3.0]])
    frequencies = torch.tensor([[0.1] * 4, [0.01] * 4])[None, None]
    rotary = Rotary.with_coordinates(
        places, frequencies, num_prefix=1, half=False, keys='content'
    )
    tokens = rotary_tokens().replace(rotary=rotary)
    torch.testing.assert_close(
        angles(tokens), torch.tensor([[0.0, 0.1, 0.2, 0.43]])
    )
    tokens = tokens.append(torch.zeros(2, 1, 8))
    tokens = tokens.replace(weight=torch.tensor([[1.0, 1, 3, 1, 2]] * 2))
    merged = tokens.merge_after_prefix(torch.tensor([[0, 0, 1, 0]] * 2), 2)
    expected = torch.tensor([[0.0, (0.1 + 3 * 0.2) / 4, 0.43]] * 2)
    torch.testing.assert_close(angles(merged), expected)


@pytest.mark.parametrize('keys', ['content', 'rotated'])
def test_reducers_compare_chosen_keys_and_attention_is_the_same(keys):
    rotary = rotary_tokens(keys=keys).rotary
    q, k, v = torch.randn(3, 2, 2, 4, 4)
    attended = rotary.attended(q, k, v, None)
    turned = rotary.rotate(k)
    assert attended.k.equal(k if keys == 'content' else turned)
    logits = rotary.rotate(q) @ turned.transpose(2, 3) / 2
    attn = logits.softmax(-1)
    torch.testing.assert_close(attended.cls_attn(), attn[:, :, 0])
    torch.testing.assert_close(attended.received(), attn.sum((1, 2)))
    torch.testing.assert_close(attended.values(), attn @ v)


ROPES = dict(
    cat=dict(rope_type='cat'),
    reference=dict(rope_type='cat', ref_feat_shape=4, dynamic_img_size=True),
    offset=dict(rope_type='cat', rope_grid_offset=1.0),
    columns_first=dict(rope_type='cat', rope_grid_indexing='xy'),
    mixed=dict(rope_type='mixed', rope_grid_indexing='xy'),
    dinov3=dict(rope_type='dinov3', rope_rotate_half=True),
    mrope=OWN['mrope'],
    augmented=dict(
        rope_type='dinov3', rope_shift_coords=0.5, rope_jitter_coords=2.0
    ),
)


@needs('timm', '1.0.31')
@pytest.mark.parametrize('kind', ROPES)
def test_angles_are_those_of_timm(kind):
    model = small_eva('dynamic', **ROPES[kind], img_size=(48, 32))
    rope = model.rope.train(kind == 'augmented')
    torch.manual_seed(0)
    expected = rope.get_embed(shape=(6, 4))
    torch.manual_seed(0)
    found = find_angles(rope, (6, 4))
    turned = found.places @ found.frequencies
    rows = torch.cat((turned.sin(), turned.cos()), dim=-1)
    rows = rows.reshape(expected.shape)
    torch.testing.assert_close(rows, expected, check_dtype=False)


@needs('timm', '1.0.31')
@torch.no_grad()
def test_mean_position_and_rotated_keys_change_the_result():
    model = small_eva('mrope')
    images = photos(model)
    changes = {}, dict(merged_position='mean'), dict(keys='rotated')
    results = [
        mmclca.reduce_tokens(model, 'ToMe', 0.5, **settings)(images)
        for settings in changes
    ]
    assert not results[0].allclose(results[1])
    assert not results[0].allclose(results[2])
