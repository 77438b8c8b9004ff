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

REDUCE_AT = (1, 3)  # of six layers, with one more recovery
SIX_LAYERS = dict(num_layers=6, reduce_at=REDUCE_AT)
ASK_CLS = ('ATS', 'DiffRate', 'EViT', 'KMedoids', 'PPT', 'TopK')
CACHES = (None, CACHE, dict(CACHE, num_tokens=2, with_gap=False))
BACKBONES = (
    dict(qkv_bias=False),
    dict(pre_norm=True, num_registers=2),
    dict(layer_scale_init_value=0.1, branches=2),
)


@pytest.fixture(params=REDUCERS)
def name(request):
    return request.param


def reduced(name, keep_rate=0.5, cache=CACHE, **options):
    """Backbone config, by default with four layers."""
    reducer = dict(type=f'mmclca.{name}', keep_rate=keep_rate)
    options = dict(dict(num_layers=4, reduce_at=(1, 2)), **options)
    return vit(reducer=reducer, cache=cache, **options)


def samples(batch):
    return [DataSample().set_gt_label(i % 5) for i in range(batch)]


def train(model, x):
    """Return the gradients of a training step, all of them finite."""
    model.train().zero_grad()
    losses = model(x, samples(len(x)), mode='loss')
    model.parse_losses(losses)[0].backward()
    for key, grad in gradients(model).items():
        assert grad is not None and grad.isfinite().all(), key
    return gradients(model)


def check_counts(counts, num_patches, cache):
    """Check token counts: reductions remove tokens, the cache adds them."""
    num_clr = cache.get('num_tokens', 1) if cache else 0
    entry = num_clr + cache.get('with_gap', True) if cache else 0
    recovered = {1: entry, 3: 2 * entry, 4: entry}
    expected = 1 + num_patches + num_clr
    for i, (entering, leaving) in enumerate(counts):
        assert entering == expected, i
        if i in REDUCE_AT:
            assert 2 <= leaving <= entering, i  # CLS and at least one token
        else:
            assert leaving == entering, i
        expected = leaving + recovered.get(i, 0)


@torch.no_grad()
@each_pair(
    name=REDUCERS,
    keep_rate=(1, (0.7, 0.25), 0.1),
    size=((32, 48), (16, 24), (80, 80)),
    cache=CACHES,
    out_type=('cla', 'cls_token', 'avg_featmap'),
)
def test_counts_and_logits_do_not_depend_on_the_batch(
    name, keep_rate, size, cache, out_type
):
    cla = out_type == 'cla'
    options = SIX_LAYERS | ({} if cla else dict(out_type=out_type))
    backbone = reduced(name, keep_rate, cache, img_size=size, **options)
    model = build(classifier(backbone, cla)).double().eval()
    x = images(3, *size).double()
    counts = token_counts(model.backbone, x)
    check_counts(counts, size[0] * size[1] // 64, cache)
    logits = model(x)
    alone = torch.cat([model(image[None]) for image in x])
    assert logits.shape == (3, 5)
    assert (logits - alone).abs().max() < 1e-9
    assert (logits[0] - logits[1]).abs().max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize('keep_rate', [0.7, 0.1])
def test_model_trains_and_evaluates_at_448_pixels(name, keep_rate):
    options = dict(SIX_LAYERS, img_size=448, patch_size=16)
    backbone = reduced(name, keep_rate, **options)
    model = build(classifier(backbone, cla=True))
    x = images(2, 448)
    train(model, x)
    with torch.no_grad():
        check_counts(token_counts(model.eval().backbone, x), 784, CACHE)
        assert model(x).isfinite().all()


@each_pair(
    name=REDUCERS,
    keep_rate=(1, 0.5, 0.1),
    cache=CACHES,
    options=BACKBONES,
    dtype=(torch.float32, torch.bfloat16, torch.float64),
    reduce_at=((1, 2), (0, 2)),  # with an empty recovery at layer 0
    cls_position=(False, True),
)
def test_backbone_trains_in_all_dtypes(
    name, keep_rate, cache, options, dtype, reduce_at, cls_position
):
    backbone = reduced(name, keep_rate, cache, reduce_at=reduce_at, **options)
    model = build(classifier(backbone, cla=True)).to(dtype)
    if not cls_position:  # as of loaded weights
        with torch.no_grad():
            model.backbone.pos_embed[:, 0] = 0
            if cache is not None:
                model.backbone.cache.clr_pos.zero_()
    x = images(3).to(dtype)
    train(model, x)
    with torch.no_grad():
        counts = token_counts(model.eval().backbone, x)
        logits = model(x)
    assert min(leaving for _, leaving in counts) >= 2
    assert logits.dtype == dtype
    assert logits.isfinite().all()


def test_all_parameters_have_gradients(name):
    """In mixed precision, too; without a CLA head, which reads all stages."""
    model, x = build(classifier(reduced(name))), images(4)
    train(model, x)
    for key, grad in gradients(model.backbone).items():
        assert grad.any(), key
    with torch.autocast('cpu', torch.bfloat16):
        grads = train(model, x)
    assert {grad.dtype for grad in grads.values()} == {torch.float32}


@torch.no_grad()
def test_evaluation_depends_on_state_dict_and_images(name):
    config = classifier(
        reduced(name, drop_rate=0.2, drop_path_rate=0.2), cla=True
    )
    model, other = build(config).eval(), MODELS.build(config).eval()
    other.load_state_dict(model.state_dict())
    x = images()
    logits = model(x)
    assert torch.equal(other(x), logits)
    assert torch.equal(deepcopy(model)(x), logits)
    for size in ((40, 24), (30, 51), (8, 16)):
        assert model(images(2, *size)).isfinite().all()


@torch.no_grad()
def test_mixed_precision_logits_are_close(name):
    model = build(classifier(reduced(name, keep_rate=1), cla=True)).eval()
    x = images(8)
    expected = model(x)
    with torch.autocast('cpu', torch.bfloat16):
        error = (model(x) - expected).abs()
    # ATS may sample other tokens of one image
    assert error.median() < 0.03 * expected.abs().max()


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
        with pytest.raises(ValueError, match='with_cls_token=False'):
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


# noise and masks, sums, sizes, parameters
@pytest.mark.parametrize('name', ['DynamicViT', 'EViT', 'ToMe', 'SiT'])
def test_checkpointing_keeps_gradients(name):
    options = dict(drop_rate=0.1, drop_path_rate=0.2)
    config = classifier(reduced(name, **options), cla=True)
    plain = build(config).double()
    config['backbone']['with_cp'] = True
    saving = MODELS.build(config).double()
    saving.load_state_dict(plain.state_dict())
    x, grads = images(4).double(), []
    for model in (plain, saving):
        norm = model.backbone.layers[3].ln1
        with patch.object(norm, 'forward', wraps=norm.forward) as forward:
            torch.manual_seed(1)
            grads.append(train(model, x))
        assert forward.call_count == 1 + (model is saving)
    for key, grad in grads[0].items():
        assert torch.allclose(grad, grads[1][key], rtol=1e-9, atol=1e-12), key


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


@torch.no_grad()
def test_inference_builds_no_attention_map(name):
    model = build(reduced(name, img_size=144)).eval()  # 18 x 18 patches
    x = images(1, 144)
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
