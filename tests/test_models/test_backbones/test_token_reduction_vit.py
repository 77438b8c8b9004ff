# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from unittest.mock import patch

import pytest
import torch
from small_models import CACHE, build, images, vit
from toy_reducers import Halve, Mask, MaskBySoftmax, Scored

from mmclca.models import TokenReducer
from mmclca.registry import MODELS

EVIT = dict(type='mmclca.EViT', keep_rate=0.5)


def test_build_does_not_change_config():
    config = vit(reducer=dict(EVIT), reduce_at=[3, 6], cache=dict(CACHE))
    config['out_indices'] = indices = [3, -1]
    assert MODELS.build(config).out_indices == [3, 11]
    assert indices == [3, -1]
    assert config['reducer'] == EVIT
    assert config['cache'] == CACHE


@pytest.mark.parametrize('frozen', [2, 4])
def test_frozen_stages_keep_reducer_trainable(frozen):
    options = dict(frozen_stages=frozen, pre_norm=True, cache=CACHE)
    reducer = dict(type=Scored)
    model = MODELS.build(vit(4, reducer=reducer, reduce_at=(1,), **options))
    assert model.train() is model
    trained = ['reducer', *(f'layers.{i}.' for i in range(frozen, 4))]
    trained += ['ln1.'] * (frozen < 4)
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == name.startswith(tuple(trained)), name
    assert [layer.training for layer in model.layers] == [
        i >= frozen for i in range(4)
    ]
    assert not model.patch_embed.training
    assert not model.drop_after_pos.training
    assert model.ln1.training == (frozen < 4)


def test_reducer_hooks_get_stage_of_reducing_layers():
    seen = []

    class Spy(TokenReducer):
        def before_layer(self, tokens, stage):
            seen.append(('before_layer', stage))
            return tokens

        def after_attention(self, tokens, attended, stage):
            seen.append(('after_attention', stage))
            return tokens

        def key_bias(self, tokens):
            seen.append('layer')

    model = build(vit(4, reducer=dict(type=Spy), reduce_at=(0, 2)))
    model(images())
    assert seen == [
        *(('before_layer', 0), 'layer', ('after_attention', 0), 'layer'),
        *(('before_layer', 1), 'layer', ('after_attention', 1), 'layer'),
    ]


def test_before_layer_precedes_attention_and_after_attention_the_ffn():
    model = build(vit(1, reducer=dict(type=Halve), reduce_at=(0,)))
    layer, reducer = model.layers[0], model.reducer
    tokens, _ = model.embed(images())
    ours = model.run_layer(layer, tokens, 0).features
    assert torch.equal(ours, layer(tokens.features[:, ::2]))
    with (
        patch.object(reducer, 'before_layer', lambda tokens, stage: tokens),
        patch.object(
            reducer,
            'after_attention',
            lambda tokens, _, stage: Halve.before_layer(
                reducer, tokens, stage
            ),
        ),
    ):
        ours = model.run_layer(layer, tokens, 0).features
    x = tokens.features + layer.attn(layer.ln1(tokens.features))
    x = x[:, ::2]
    assert torch.equal(ours, layer.ffn(layer.ln2(x), identity=x))


def test_key_bias_and_softmax_apply_in_every_layer():
    models = [
        build(vit(4, reducer=dict(type=kind), reduce_at=(2,))).double().eval()
        for kind in (Mask, MaskBySoftmax, TokenReducer)
    ]
    x = images().double()
    hidden = x.clone()
    hidden[:, :, :8, 8:16] += 1  # the second patch
    for model in models:
        model.load_state_dict(models[0].state_dict())
    (fused,), (explicit,), (plain,) = (model(x) for model in models)
    assert torch.allclose(fused, explicit, atol=1e-12)
    assert (fused - plain).abs().max() > 1e-3
    for model in models[:2]:
        assert torch.allclose(model(hidden)[0], fused, atol=1e-12)
    assert (models[2](hidden)[0] - plain).abs().max() > 1e-3


def scatter(tokens, patches, hw):
    """Write tokens (B, K, C) to patches of a zero map."""
    featmap = torch.zeros(tokens.size(0), tokens.size(2), hw[0] * hw[1])
    for token, patch_index in zip(tokens.unbind(1), patches, strict=True):
        featmap[:, :, patch_index] = token
    return featmap.unflatten(2, hw)


@pytest.mark.parametrize('cache', [None, CACHE])
def test_featmap_restores_positions_of_kept_tokens(cache):
    config = vit(
        4,
        reducer=dict(type=Halve),
        reduce_at=(0, 2),
        cache=cache,
        out_type='featmap',
        out_indices=(0, 1, 2, 3),
    )
    model = build(config).eval()
    x = images()
    maps = model(x)
    model.out_type = 'raw'
    raw = model(x)
    odd = [1, 3, 5, 7, 9, 11, 13, 15]
    for layer, patches in enumerate((odd, odd, odd[1::2], odd[1::2])):
        tokens = raw[layer][:, 1 : 1 + len(patches)]
        assert torch.allclose(
            maps[layer], scatter(tokens, patches, (4, 4)), atol=1e-6
        )


def test_featmap_repeats_fused_token_at_its_patches():
    config = vit(
        1,
        img_size=(8, 32),
        reducer=dict(EVIT, keep_rate=0.4),
        reduce_at=(0,),
        out_type='featmap',
    )
    model = build(config).eval()
    x = images(1, 8, 32)
    featmap = model(x)[0]
    model.out_type = 'raw'
    (raw,), tokens = model.forward_tokens(x)
    kept = (tokens.trace[0].index[0, 1:] - 1).tolist()
    assert len(kept) == 2
    for place in range(4):
        row = 1 + kept.index(place) if place in kept else 3
        assert torch.allclose(featmap[0, :, 0, place], raw[0, row], atol=1e-6)
