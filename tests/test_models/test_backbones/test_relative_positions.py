# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Relative position bias: as in BEiT, and after reductions."""

import pytest
import torch
from small_models import CACHE, build, images, vit

from mmclca.checkpoints.load import load
from mmclca.models.backbones.relative_positions import TABLE
from mmclca.registry import MODELS

PLACED = ('ATS', 'DynamicViT', 'EViT', 'TopK')


def biased(reducer=None, cache=None, num_layers=3, **options):
    places = dict(reduce_at=(1,)) if reducer or cache else {}
    if reducer:
        places['reducer'] = dict(type=f'mmclca.{reducer}', keep_rate=0.5)
    options = places | options
    return vit(num_layers, rel_pos_bias=True, cache=cache, **options)


def pair_bias(table, places, side=4):
    """The bias (H, N, N) for places: (row, column), 'cls' or None."""
    width = 2 * side - 1
    found = torch.zeros(len(places), len(places), table.size(1)).to(table)
    for i, query in enumerate(places):
        for j, key in enumerate(places):
            if query is None or key is None:
                continue
            if 'cls' in (query, key):
                both = query == key
                entry = -1 if both else (-3 if query == 'cls' else -2)
            else:
                down, right = query[0] - key[0], query[1] - key[1]
                entry = (down + side - 1) * width + right + side - 1
            found[i, j] = table[entry]
    return found.permute(2, 0, 1)


def test_outputs_equal_beit():
    own = build(biased(out_type='raw')).double().eval()
    theirs = MODELS.build(
        dict(
            type='BEiTViT',
            arch=own.arch_settings,
            img_size=32,
            patch_size=8,
            out_type='raw',
            layer_scale_init_value=0.0,
            layer_cfgs=dict(bias=True),
            final_norm=True,
            use_abs_pos_emb=True,
            norm_cfg=dict(type='LN', eps=1e-6),
        )
    )
    theirs.double().eval()
    _, unused = theirs.load_state_dict(own.state_dict(), strict=False)
    assert not unused
    x = images().double()
    torch.testing.assert_close(own(x)[0], theirs(x)[0])


@pytest.mark.parametrize('name', PLACED)
def test_bias_follows_kept_patches_and_is_zero_otherwise(name):
    model = build(biased(name, CACHE)).double().eval()
    seen, key_bias = [], model.key_bias

    def note(layer, tokens):
        seen.append((layer, tokens, key_bias(layer, tokens)))
        return seen[-1][-1]

    model.key_bias = note
    model.forward_tokens(images(1).double())
    layer, tokens, bias = seen[-1]
    weights = tokens.patch_weights[0]
    own = model.reducer.key_bias(tokens)
    places = []
    for i, row in enumerate(weights):
        alone = (row > 0).sum() == 1 and row.max() == 1
        where = divmod(int(row.argmax()), 4) if alone else None
        places.append('cls' if i == 0 else where)
    assert sum(place is not None for place in places) > 2
    expected = pair_bias(getattr(layer.attn, TABLE), places)
    expected = expected if own is None else expected + own
    torch.testing.assert_close(bias, expected.expand_as(bias))


def test_weights_without_tables_load(tmp_path):
    plain = build(vit(3))
    path = str(tmp_path / 'plain.pth')
    torch.save(plain.state_dict(), path)
    model = MODELS.build(biased())
    load(model, path, strict=False)
    x = images()
    torch.testing.assert_close(model.eval()(x), plain.eval()(x))


def test_tables_for_another_grid_are_interpolated(tmp_path):
    side, model = 56, build(biased(img_size=32))
    table = model.layers[1].attn.get_parameter(TABLE)
    rows = torch.arange(-3.0, 4).repeat_interleave(7)
    table.data[:-3] = rows[:, None]
    path = str(tmp_path / 'trained.pth')
    torch.save(model.state_dict(), path)
    other = MODELS.build(biased(img_size=side))
    load(other, path, strict=False)
    found = other.layers[1].attn.get_parameter(TABLE)
    torch.testing.assert_close(found[-3:], table[-3:])
    wide = 2 * side // 8 - 1
    found = found[:-3].view(wide, wide, -1)
    rows = found[:, :1]
    torch.testing.assert_close(found, rows.expand_as(found))
    torch.testing.assert_close(rows.flip(0), -rows)
    assert (rows.diff(dim=0) > 0).all() and rows.max() > 2


def test_bias_is_refused_if_setting_has_no_places():
    for options, term in (
        (dict(reducer='ToMe'), 'ToMe'),
        (dict(branches=2), 'branches=2'),
    ):
        with pytest.raises(ValueError, match=term):
            MODELS.build(biased(**options))
    with pytest.raises(ValueError, match='img_size'):
        build(biased())(images(height=64))
