# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Properties shared by all reducers."""

from copy import deepcopy
from unittest.mock import patch

import pytest
import torch
from mmpretrain.structures import DataSample
from pairwise import each_pair
from small_models import (
    CACHE,
    CACHES,
    REDUCE_AT,
    REDUCERS,
    build,
    classifier,
    gradients,
    images,
    token_counts,
    vit,
)
from torch.utils._python_dispatch import TorchDispatchMode

from mmclca.registry import MODELS

KEEP_RATES = (1, 0.7, 0.5, 0.25, 0.1, (0.7, 0.25, 0.5))
ASK_CLS = ('ATS', 'DiffRate', 'EViT', 'KMedoids', 'PPT', 'TopK')
SHORT = dict(num_layers=5, reduce_at=(1, 2, 3))
BACKBONES = (
    {},
    dict(layer_scale_init_value=0.1),
    dict(pre_norm=True),
    dict(qkv_bias=False),
    dict(layer_scale_init_value=0.1, branches=2),
)
PLACES = (  # settings of cache and output
    dict(cache=None),
    dict(cache=CACHE, num_registers=2),
    dict(cache=CACHE, out_type='avg_featmap'),
    dict(  # empty recovery at layer 0
        cache=dict(CACHE, num_tokens=2, with_gap=False),
        num_layers=6,
        reduce_at=(0, 1, 4),
    ),
)


@pytest.fixture(params=REDUCERS)
def name(request):
    return request.param


def reduced(name, keep_rate=0.5, cache=CACHE, **options):
    """Backbone config with reductions after layers 3, 6 and 9."""
    options.setdefault('reduce_at', REDUCE_AT)
    reducer = dict(type=f'mmclca.{name}', keep_rate=keep_rate)
    return vit(reducer=reducer, cache=cache, **options)


def without_cls_position(backbone):
    """Mimic loaded weights without a position for CLS."""
    with torch.no_grad():
        backbone.pos_embed[:, 0] = 0
        if backbone.cache is not None and backbone.cache.num_tokens > 0:
            backbone.cache.clr_pos.zero_()


def samples(batch):
    return [DataSample().set_gt_label(i % 5) for i in range(batch)]


def check_training(model, x):
    """Check that all used parameters have finite gradients."""
    model.train().zero_grad()
    losses = model(x, samples(len(x)), mode='loss')
    model.parse_losses(losses)[0].backward()
    for key, grad in gradients(model).items():
        assert grad is not None and grad.isfinite().all(), key


def check_counts(counts, num_patches, cache):
    """Check token counts: reductions remove tokens, the cache adds them."""
    num_clr = cache.get('num_tokens', 1) if cache else 0
    entry = num_clr + cache.get('with_gap', True) if cache else 0
    recovered = {3: 3 * entry, 6: 3 * entry, 9: 3 * entry, 10: entry}
    expected = 1 + num_patches + num_clr
    for i, (entering, leaving) in enumerate(counts):
        assert entering == expected, i
        if i in REDUCE_AT:
            assert 2 <= leaving <= entering, i  # CLS and at least one token
        else:
            assert leaving == entering, i
        expected = leaving + recovered.get(i, 0)


@each_pair(
    name=REDUCERS,
    keep_rate=KEEP_RATES,
    size=((16, 24, 8), (32, 48, 8), (224, 224, 16)),
    cache=CACHES,
    cla=(False, True),
)
def test_counts_and_logits_of_a_model(name, keep_rate, size, cache, cla):
    *size, patch = size
    options = dict(img_size=size, patch_size=patch)
    backbone = reduced(name, keep_rate, cache, **options)
    model = build(classifier(backbone, cla)).eval()
    with torch.no_grad():
        x = images(2, *size)
        counts = token_counts(model.backbone, x)
        logits = model(x)
    check_counts(counts, size[0] * size[1] // patch**2, cache)
    assert logits.shape == (2, 5)
    assert logits.isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize('keep_rate', [0.7, 0.1])
def test_model_trains_and_evaluates_at_448_pixels(name, keep_rate):
    backbone = reduced(name, keep_rate, img_size=448, patch_size=16)
    model = build(classifier(backbone, cla=True))
    x = images(2, 448)
    check_training(model, x)
    with torch.no_grad():
        model.eval()
        check_counts(token_counts(model.backbone, x), 784, CACHE)
        assert model(x).isfinite().all()


def test_model_accepts_other_image_sizes(name):
    model = build(classifier(reduced(name), cla=True)).eval()
    with torch.no_grad():
        for size in ((32, 32), (40, 24), (30, 51), (8, 16)):
            assert model(images(2, *size)).isfinite().all()


@pytest.mark.parametrize('cla', [False, True])
def test_all_parameters_have_gradients(name, cla):
    model = build(classifier(reduced(name), cla))
    check_training(model, images(4))
    for key, grad in gradients(model.backbone).items():
        assert grad.any(), key


@each_pair(
    name=REDUCERS,
    keep_rate=KEEP_RATES,
    cache=CACHES,
    options=BACKBONES,
    dtype=(torch.float32, torch.bfloat16, torch.float64),
    cla=(False, True),
    cls_position=(False, True),
)
def test_backbone_trains_in_all_dtypes(
    name, keep_rate, cache, options, dtype, cla, cls_position
):
    backbone = reduced(name, keep_rate, cache, **SHORT, **options)
    model = build(classifier(backbone, cla))
    if not cls_position:
        without_cls_position(model.backbone)
    x = images(3).to(dtype)
    check_training(model.to(dtype), x)
    with torch.no_grad():
        counts = token_counts(model.eval().backbone, x)
        logits = model(x)
    assert min(leaving for _, leaving in counts) >= 2
    assert logits.dtype == dtype
    assert logits.isfinite().all()


@each_pair(name=REDUCERS, keep_rate=(0.9, 0.5, 0.25, 0.1), options=PLACES)
def test_logits_do_not_depend_on_the_batch(name, keep_rate, options):
    """Includes outputs that average all tokens."""
    backbone = reduced(name, keep_rate, **options)
    cla = 'out_type' not in options
    model = build(classifier(backbone, cla)).double().eval()
    x = images(8).double()
    order = torch.tensor([4, 0, 7, 5, 2, 6, 1, 3])
    with torch.no_grad():
        logits = model(x)
        alone = torch.cat([model(image[None]) for image in x])
        shuffled = model(x[order])
    assert (logits - alone).abs().max() < 1e-9
    assert (logits[order] - shuffled).abs().max() < 1e-9
    assert (logits[0] - logits[1]).abs().max() > 1e-3


def test_reducer_trains_or_is_refused_if_cls_is_missing(name):
    """Methods with CLS attention are refused, the rest train.

    ``KMedoids`` needs CLS unless it uses the attention of all tokens.
    """
    backbone = reduced(
        name,
        cache=dict(CACHE, num_tokens=0),
        with_cls_token=False,
        out_type='avg_featmap',
    )
    if name in ASK_CLS:
        named = f'{name} needs a CLS token: with_cls_token=False is not'
        with pytest.raises(ValueError, match=named):
            MODELS.build(backbone)
        if name != 'KMedoids':
            return
        backbone['reducer']['attention_of_all'] = True
    model, x = build(backbone), images(3)
    model.train().forward_tokens(x)[0][0].sum().backward()
    assert all(grad.isfinite().all() for grad in gradients(model).values())
    with torch.no_grad():
        together = model.eval()(x)[0]
        alone = torch.cat([model(image[None])[0] for image in x])
    torch.testing.assert_close(together, alone)


def test_evaluation_is_bitwise_repeatable(name):
    backbone = reduced(name, drop_rate=0.2, drop_path_rate=0.2)
    model = build(classifier(backbone, cla=True)).eval()
    x = images()
    with torch.no_grad():
        logits = model(x)
        assert torch.equal(model(x), logits)
        assert torch.equal(deepcopy(model)(x), logits)


def test_state_dict_restores_logits(name):
    config = classifier(reduced(name), cla=True)
    first, second = build(config).eval(), build(config).eval()
    x = images()
    with torch.no_grad():
        assert not torch.equal(first(x), second(x))
        second.load_state_dict(first.state_dict())
        assert torch.equal(first(x), second(x))


def test_mixed_precision_logits_are_close(name):
    model = build(classifier(reduced(name, keep_rate=1), cla=True)).eval()
    x = images()
    with torch.no_grad():
        expected = model(x)
        with torch.autocast('cpu', torch.bfloat16):
            logits = model(x)
    assert (logits - expected).abs().max() < 0.1 * expected.abs().max()


def test_mixed_precision_gradients_are_float32(name):
    model = build(classifier(reduced(name), cla=True)).train()
    with torch.autocast('cpu', torch.bfloat16):
        losses = model(images(4), samples(4), mode='loss')
    model.parse_losses(losses)[0].backward()
    for key, grad in gradients(model).items():
        assert grad.dtype == torch.float32, key
        assert grad.isfinite().all(), key


def test_checkpointing_keeps_gradients(name):
    options = dict(SHORT, drop_rate=0.1, drop_path_rate=0.2)
    config = classifier(reduced(name, **options), cla=True)
    plain = build(config).double()
    config['backbone']['with_cp'] = True
    saving = MODELS.build(config).double()
    saving.load_state_dict(plain.state_dict())
    x = images(4).double()
    for model in (plain, saving):
        torch.manual_seed(1)
        losses = model.train()(x, samples(4), mode='loss')
        layer = model.backbone.layers[4]
        with patch.object(layer.ln1, 'forward', wraps=layer.ln1.forward) as ln:
            model.parse_losses(losses)[0].backward()
        assert ln.call_count == (model is saving)
    for key, grad in gradients(plain).items():
        other = gradients(saving)[key]
        assert torch.allclose(grad, other, rtol=1e-9, atol=1e-12), key


class LargestMap(TorchDispatchMode):
    """Record tensors in memory with two dimensions as long as a sequence."""

    def __init__(self, lengths):
        super().__init__()
        self.lengths = lengths
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, torch.Tensor):
                shape = list(tensor.shape)
                twice = any(shape.count(n) > 1 for n in self.lengths)
                in_memory = tensor.untyped_storage().nbytes()
                if twice and in_memory >= tensor.nbytes:
                    self.found.append((str(function), shape))
        return out


def test_inference_builds_no_attention_map(name):
    model = build(reduced(name, img_size=144)).eval()  # 18 x 18 patches
    x = images(2, 144)
    with torch.no_grad():
        counts = token_counts(model, x)
        lengths = {n for pair in counts for n in pair if n > 32}
        with LargestMap(lengths) as seen:
            model(x)
    assert 326 in lengths
    assert seen.found == []


def test_attention_map_would_be_detected():
    q = torch.randn(1, 2, 50, 8)
    with LargestMap({50}) as seen:
        torch.nn.functional.scaled_dot_product_attention(q, q, q)
        assert seen.found == []
        q @ q.transpose(-2, -1)
    assert seen.found[0] == ('aten.bmm.default', [2, 50, 50])
