# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from copy import copy
from unittest.mock import patch

import pytest
import torch
from mmpretrain.models.backbones import VisionTransformer
from small_models import CACHE, REDUCE_AT, arch, build, images, vit
from toy_reducers import Halve, Mask, MaskBySoftmax, Scored

from mmclca.models import TokenReducer, TokenReductionViT
from mmclca.registry import MODELS

EVIT = dict(type='mmclca.EViT', keep_rate=0.5)


@pytest.mark.parametrize(
    'options, error, named',
    [
        (dict(out_indices={1: 1}), AssertionError, "get <class 'dict'>"),
        (dict(out_indices=[0, 13]), AssertionError, 'Invalid out_indices 13'),
        (dict(out_type='logits'), ValueError, 'Unsupported `out_type` logits'),
        (dict(with_cls_token=False), ValueError, 'must be True'),
        (dict(keep_rate=0.5), TypeError, "argument 'keep_rate'"),
    ],
)
def test_arguments_of_the_parent_are_checked(options, error, named):
    with pytest.raises(error, match=named):
        TokenReductionViT(**{'arch': arch(), **options})


@pytest.mark.parametrize(
    'options, named',
    [
        (dict(reduce_at=(6, 3)), r'reduce_at=\(6, 3\) must be ascending'),
        (dict(reduce_at=(3, 3)), r'reduce_at=\(3, 3\) must be .*different'),
        (dict(reduce_at=[3, 12]), r'reduce_at=\[3, 12\] .*within 0 to 11'),
        (dict(reduce_at=(3.5, 6)), r'reduce_at=\(3.5, 6\) .*\(integers\)'),
        (dict(reduce_at=True), r'reduce_at=True must be .*(integers)'),
        (dict(reduce_at='3'), "reduce_at='3' must be .*(integers)"),
        (dict(reduce_at=(-1,)), r'reduce_at=\(-1,\) .*within 0 to 11'),
        (dict(reducer=EVIT), r'mmclca.EViT with reduce_at=\(\) never'),
        (dict(cache=CACHE), r'cache with reduce_at=\(\) never recovers'),
        (
            dict(
                cache=CACHE,
                reduce_at=(3,),
                with_cls_token=False,
                out_type='featmap',
            ),
            'copies of CLS: with_cls_token=False is not allowed',
        ),
        (
            dict(
                reducer=dict(type='mmclca.ToMe', keep_rate=0.5),
                cache=dict(CACHE, protect_clr=True),
                reduce_at=(3,),
            ),
            'ToMe cannot keep to protect_clr=True: that goes with TopK',
        ),
    ],
)
def test_configuration_that_cannot_work(options, named):
    with pytest.raises(ValueError, match=named):
        MODELS.build(vit(**options))


def test_configs_are_left_as_they_are():
    config = vit(reducer=dict(EVIT), reduce_at=[3, 6], cache=dict(CACHE))
    config['out_indices'] = indices = [3, -1]
    assert MODELS.build(config).out_indices == [3, 11]
    assert indices == [3, -1]
    assert config['reducer'] == EVIT
    assert config['cache'] == CACHE


def test_init_weights():
    config = vit(
        init_cfg=[dict(type='Kaiming', layer='Conv2d', mode='fan_in')],
        reduce_at=(3,),
        cache=CACHE,
    )
    model = MODELS.build(config)
    before = model.patch_embed.projection.weight.clone()
    assert not model.pos_embed.any()
    model.init_weights()
    assert not torch.equal(model.patch_embed.projection.weight, before)
    assert 0.01 < model.pos_embed.std() < 0.03
    assert not model.cls_token.any()
    assert not model.cache.clr.any()  # as CLS; a loaded one is copied
    assert 0.01 < model.cache.clr_pos.std() < 0.03


@pytest.mark.parametrize('frozen', [1, 2, 4])
def test_frozen_stages(frozen):
    config = vit(
        4,
        frozen_stages=frozen,
        pre_norm=True,
        reducer=dict(type=Scored),
        reduce_at=(1,),
        cache=CACHE,
    )
    model = MODELS.build(config)
    assert model.train() is model
    trained = {n for n, p in model.named_parameters() if p.requires_grad}
    expected = {n for n in dict(model.named_parameters()) if 'reducer' in n}
    for name in dict(model.named_parameters()):
        layer = name.split('.')[1] if name.startswith('layers.') else None
        last_norm = name.startswith('ln1.') and frozen < 4
        if last_norm or (layer and int(layer) >= frozen):
            expected.add(name)
    assert trained == expected
    assert [layer.training for layer in model.layers] == [
        i >= frozen for i in range(4)
    ]
    assert not model.patch_embed.training
    assert not model.drop_after_pos.training
    assert model.ln1.training == (frozen < 4)


def test_without_frozen_stages_everything_is_trained():
    model = MODELS.build(vit(4, reduce_at=(1,), cache=CACHE))
    assert all(p.requires_grad for p in model.parameters())
    assert model.train() is model
    assert all(m.training for m in model.modules())
    assert model.eval() is model
    assert not any(m.training for m in model.modules())


def test_layer_depth():
    model = MODELS.build(
        vit(
            4,
            pre_norm=True,
            reducer=dict(type=Scored),
            reduce_at=(1, 3),
            cache=CACHE,
        )
    )
    expected = {
        'cls_token': 0,
        'pos_embed': 0,
        'patch_embed.projection.weight': 0,
        'cache.clr': 0,
        'cache.clr_pos': 0,
        'pre_norm.weight': 0,
        'layers.0.ln1.weight': 1,
        'layers.3.ffn.layers.1.bias': 4,
        'ln1.weight': 5,
        'reducer.scores.0.0.weight': 2,
        'reducer.scores.1.2.bias': 4,
        'reducer.shared.5.weight': 2,
        'reducer.scale': 2,
    }
    assert expected.keys() <= dict(model.named_parameters()).keys()
    for name, depth in expected.items():
        assert model.get_layer_depth(name) == (depth, 6)
        assert model.get_layer_depth(f'a.{name}', 'a.') == (depth, 6)
    assert model.get_layer_depth('head.fc.weight', 'backbone.') == (5, 6)


def test_depth_of_the_parents_parameters_is_the_parents():
    ours, theirs = MODELS.build(vit(4)), VisionTransformer(arch(4), 32, 8)
    for name in theirs.state_dict():
        depth = theirs.get_layer_depth(f'backbone.{name}', 'backbone.')
        assert ours.get_layer_depth(f'backbone.{name}', 'backbone.') == depth


@pytest.mark.parametrize('size', [(32, 32), (56, 24), (30, 51)], ids=str)
@pytest.mark.parametrize('out_type', ['cls_token', 'featmap', 'avg_featmap'])
def test_unbalanced_inputs(size, out_type):
    config = vit(
        reducer=EVIT, reduce_at=REDUCE_AT, cache=CACHE, out_type=out_type
    )
    model = build(config).eval()
    with torch.no_grad():
        out = model(images(2, *size))[0]
    grid = [-(-side // 8) for side in size]
    assert list(out.shape[2:]) == (grid if out_type == 'featmap' else [])
    assert out.isfinite().all()


def test_embedding_puts_clr_tokens_with_their_positions_at_the_end():
    config = vit(
        2, reduce_at=(0,), cache=dict(CACHE, num_tokens=2), pre_norm=True
    )
    model = build(config).eval()
    plain = VisionTransformer(arch(2), 32, 8, out_type='raw', pre_norm=True)
    plain.load_state_dict(model.state_dict(), strict=False)
    plain.layers = torch.nn.ModuleList()  # nothing after the embedding
    x = images()
    tokens, hw = model.embed(x)
    assert hw == (4, 4)
    assert tokens.num_cached == 2
    assert tokens.num_pooled == 17
    hooked = []
    plain.pre_norm.register_forward_hook(lambda *args: hooked.append(args[2]))
    plain(x)
    assert torch.equal(tokens.x[:, :17], hooked[0])
    clr = model.pre_norm(model.cache.clr + model.cache.clr_pos)
    assert torch.allclose(tokens.x[:, 17:], clr.expand(2, -1, -1), atol=1e-6)


def test_reduce_at_without_a_reducer_and_a_cache_does_nothing():
    model = build(vit(reduce_at=REDUCE_AT))
    plain = VisionTransformer(arch(), 32, 8)
    plain.load_state_dict(model.state_dict())
    x = images()
    assert torch.equal(model(x)[0], plain(x)[0])


def test_stages_are_counted_over_the_layers_that_reduce():
    seen = []

    class Spy(TokenReducer):
        def before(self, tokens, stage):
            seen.append(('before', stage))
            return tokens

        def between(self, tokens, attended, stage):
            seen.append(('between', stage))
            return tokens

        def key_bias(self, tokens):
            seen.append('layer')

    model = build(vit(4, reducer=dict(type=Spy), reduce_at=(0, 2)))
    model(images())
    assert seen == [
        *(('before', 0), 'layer', ('between', 0), 'layer'),
        *(('before', 1), 'layer', ('between', 1), 'layer'),
    ]


def test_both_halves_of_a_layer_see_the_reduced_tokens():
    """After ``between`` only the FFN, after ``before`` the attention too."""
    model = build(vit(1, reducer=dict(type=Halve), reduce_at=(0,)))
    layer, reducer = model.layers[0], model.reducer
    tokens, _ = model.embed(images())
    ours = model.run_layer(layer, tokens, 0).x
    assert torch.equal(ours, layer(tokens.x[:, ::2]))
    with (
        patch.object(reducer, 'before', lambda tokens, stage: tokens),
        patch.object(
            reducer,
            'between',
            lambda tokens, _, stage: Halve.before(reducer, tokens, stage),
        ),
    ):
        ours = model.run_layer(layer, tokens, 0).x
    x = tokens.x + layer.attn(layer.ln1(tokens.x))
    x = x[:, ::2]
    assert torch.equal(ours, layer.ffn(layer.ln2(x), identity=x))


def test_key_bias_and_softmax_act_in_every_layer():
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


def test_trace_is_returned_beside_the_features():
    config = vit(reducer=EVIT, reduce_at=REDUCE_AT, cache=CACHE)
    model = build(config).eval()
    x = images()
    outs, tokens = model.forward_tokens(x)
    assert torch.equal(outs[0], model(x)[0])
    names = [type(record).__name__ for record in tokens.trace]
    stage = ['Kept', 'Appended']
    assert names == ['Appended', *stage, *stage, *stage, 'Appended']
    assert torch.equal(tokens.x[:, 0], outs[0])


def test_no_state_of_a_pass_is_left_on_the_modules():
    config = vit(reducer=EVIT, reduce_at=REDUCE_AT, cache=CACHE)
    model = build(config)
    before = [
        {key: copy(value) for key, value in vars(module).items()}
        for module in model.modules()
    ]
    model(images())
    for module, state in zip(model.modules(), before, strict=True):
        assert vars(module) == state


def scatter(tokens, patches, hw):
    """A map of zeros with tokens (B, K, C) put on some patches."""
    featmap = torch.zeros(tokens.size(0), tokens.size(2), hw[0] * hw[1])
    for token, patch_index in zip(tokens.unbind(1), patches, strict=True):
        featmap[:, :, patch_index] = token
    return featmap.unflatten(2, hw)


@pytest.mark.parametrize('cache', [None, CACHE])
def test_featmap_puts_kept_tokens_back_in_their_places(cache):
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


def test_featmap_without_a_cls_token_is_in_its_places_too():
    config = vit(
        2,
        reducer=dict(type=Halve),
        reduce_at=(0,),
        out_type='featmap',
        with_cls_token=False,
    )
    model = build(config).eval()
    x = images(2, 32, 24)
    featmap = model(x)[0]
    model.out_type = 'raw'
    expected = scatter(model(x)[0], [0, 2, 4, 6, 8, 10], (4, 3))
    assert torch.allclose(featmap, expected, atol=1e-6)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_featmap_puts_the_fused_token_where_its_patches_were(dtype):
    config = vit(
        1,
        img_size=(8, 32),
        reducer=dict(EVIT, keep_rate=0.4),
        reduce_at=(0,),
        out_type='featmap',
    )
    model = build(config).to(dtype).eval()
    x = images(1, 8, 32).to(dtype)
    featmap = model(x)[0]
    model.out_type = 'raw'
    (raw,), tokens = model.forward_tokens(x)
    kept = (tokens.trace[0].index[0, 1:] - 1).tolist()
    assert len(kept) == 2
    for place in range(4):
        row = 1 + kept.index(place) if place in kept else 3
        assert torch.allclose(featmap[0, :, 0, place], raw[0, row], atol=1e-6)


def test_average_is_that_of_the_tokens_left():
    config = vit(reducer=EVIT, reduce_at=REDUCE_AT, out_type='avg_featmap')
    model = build(config).eval()
    x = images()
    pooled = model(x)[0]
    model.out_type = 'raw'
    raw = model(x)[0]
    assert raw.size(1) == 5  # CLS and 3 + 1 of 5 + 1 of 8 + 1 of 16
    assert torch.equal(pooled, model.ln2(raw[:, 1:].mean(dim=1)))
