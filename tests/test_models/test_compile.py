# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Backbone and head compile to one graph each, once per shape."""

import pytest
import torch
from installed import NEEDS_COMPILER, needs
from process_state import compiling
from small_models import CACHE, REDUCERS, arch, build, classifier, images, vit
from torch._dynamo.utils import counters
from torch.nn.functional import cross_entropy

from mmclca.engine.hooks.compile_hook import compiles_right
from mmclca.models.heads import CLAHead
from mmclca.models.layers import talking_heads

# one C++ file per graph, three times faster than one per kernel
MACHINE_CODE = torch._inductor.config.patch(cpp_wrapper=True)
# reducers with another drop, sampling or tie-breaking in training
OTHER_IN_EVALUATION = ('ATS', 'DPCKNN', 'DynamicViT')

pytestmark = [
    NEEDS_COMPILER,
    pytest.mark.usefixtures('nothing_is_compiled_yet'),
]


@pytest.fixture(params=REDUCERS)
def name(request):
    return request.param


def small_classifier(name, cla=True, num_layers=2, **options):
    """A classifier with a reduction in every layer except the last."""
    backbone = vit(
        num_layers=num_layers,
        reduce_at=tuple(range(num_layers - 1)),
        reducer=dict(type=f'mmclca.{name}', keep_rate=0.5),
        cache=CACHE if cla else None,
        **options,
    )
    return build(classifier(backbone, cla))


def compiled(function, backend, **options):
    options = dict(dict(dynamic=False, fullgraph=True), **options)
    return torch.compile(function, backend=backend, **options)


def step(model, backbone, head, x):
    """Scores and loss by name, and in training gradients."""
    torch.manual_seed(1)  # of dropout and Gumbel noise
    model.zero_grad()
    with torch.set_grad_enabled(model.training):
        feats, tokens = backbone(x)
        scores = head(feats)
        losses = model.backbone.reducer.loss(tokens)
        loss = cross_entropy(scores, torch.arange(len(x), device=x.device))
        loss = loss + sum(losses.values())
    if model.training:
        loss.backward()
    grads = {k: p.grad for k, p in model.named_parameters() if model.training}
    return dict(scores=scores.detach(), loss=loss.detach()), grads


def assert_near(ours, theirs):
    """Compare relative to the largest value; some gradients are noise."""
    for result, expected in zip(ours, theirs, strict=True):
        largest = max((x.abs().max() for x in expected.values()), default=0)
        for key in expected:
            error = (result[key] - expected[key]).abs().max()
            assert error <= 1e-4 * largest, key


def check(model, backend):
    """Compare with eager mode; refuse recompilation for other batches."""
    x, *others = (images(4) for _ in range(3))
    # ATS pads as if compiled, so that dropout samples as many numbers
    with compiling():
        expected = step(model, model.backbone.forward_tokens, model.head, x)
    functions = [compiled(model.backbone.forward_tokens, backend), model.head]
    if isinstance(model.head, CLAHead):  # other heads are mmpretrain's
        functions[1] = compiled(model.head, backend)
    assert_near(step(model, *functions, x), expected)
    with torch.compiler.set_stance('fail_on_recompile'):
        for x in others:
            step(model, *functions, x)


@pytest.mark.slow
def test_training_compiles_to_one_graph(name):
    options = dict(drop_rate=0.1, drop_path_rate=0.1)
    check(small_classifier(name, **options).train(), 'eager')


@pytest.mark.slow
@pytest.mark.skipif(
    not compiles_right(),
    reason=f'torch {torch.__version__} compiles training wrongly, as '
    'CompileHook warns: install torch 2.14',
)
def test_inductor_training_equals_eager(name):
    options = dict(drop_rate=0.1, drop_path_rate=0.1)
    model = small_classifier(name, name == 'EViT', **options).train()
    # random numbers as in eager mode
    with MACHINE_CODE, torch._inductor.config.patch(fallback_random=True):
        check(model, 'inductor')


@pytest.mark.slow
@pytest.mark.parametrize('name', OTHER_IN_EVALUATION, indirect=True)
def test_inductor_evaluation_equals_eager(name):
    with MACHINE_CODE:
        check(small_classifier(name).eval(), 'inductor')


ONE_LAYER = dict(embed_dims=16, num_layers=1)
OTHERS = dict(
    CaiT=dict(arch=arch(1), patch_size=8),
    ResMLP=dict(arch=ONE_LAYER, patch_size=8),
    PatchConvNet=dict(arch=ONE_LAYER),
)


@pytest.mark.slow
@pytest.mark.parametrize('kind', OTHERS)
def test_inductor_equals_eager_for_other_backbones(kind):
    config = dict(OTHERS[kind], type=f'mmclca.{kind}', img_size=32)
    model, x = build(config).eval(), images()
    with torch.no_grad(), MACHINE_CODE:
        ours, theirs = compiled(model, 'inductor')(x), model(x)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


# torch 2.8 makes several graphs for checkpointing and feature maps
@needs('torch', '2.14')
def test_all_options_together_compile():
    config = vit(
        num_layers=2,
        reduce_at=(0,),
        reducer=dict(type='mmclca.EViT', keep_rate=0.5),
        cache=CACHE,
        stem=dict(type='mmclca.HMLPStem'),
        patch_size=16,
        branches=2,
        drop_path_rate=0.5,
        drop_path_mode='uniform',
        layer_scale_init_value=0.1,
        pre_norm=True,
        frozen_stages=1,
        with_cp=True,
        out_type='featmap',
    )
    model, x, outs = build(config).train(), images(8), []
    for function in (compiled(model, 'eager'), model):
        torch.manual_seed(1)
        outs.append(function(x))
    torch.testing.assert_close(*outs)


@pytest.mark.slow
@pytest.mark.parametrize('train', [False, True])
def test_chunked_talking_heads_with_merging_compile(monkeypatch, train):
    monkeypatch.setattr(talking_heads, 'CHUNK_SIZE', 6)
    config = dict(
        vit(num_layers=2),
        type='mmclca.CaiT',
        reducer=dict(type='mmclca.ToMe', keep_rate=0.5),
        reduce_at=(0,),
        num_class_layers=1,
    )
    check(build(classifier(config)).train(train), 'eager')


@pytest.mark.slow
def test_mixed_precision_compiles():
    model = small_classifier('EViT').eval()
    function = compiled(model, 'aot_eager')
    x = images()
    with torch.no_grad(), torch.autocast('cpu', torch.bfloat16):
        torch.testing.assert_close(function(x), model(x))


@pytest.mark.slow
def test_dynamic_batch_size_compiles_once(name):
    if name == 'ATC':
        pytest.skip('while_loop does not support dynamic shapes')
    model = small_classifier(name).eval()
    function = compiled(model, 'eager', dynamic=True)
    with torch.no_grad():
        function(images(4))
        with torch.compiler.set_stance('fail_on_recompile'):
            for batch in (3, 7):
                x = images(batch)
                torch.testing.assert_close(
                    function(x), model(x), rtol=1e-4, atol=1e-5
                )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='no GPU')
@pytest.mark.parametrize('train', [False, True])
def test_cuda_graphs_are_not_skipped(name, train):
    if name == 'ATC':
        pytest.skip('CUDA graphs have no loops')
    model = small_classifier(name).train(train).cuda()
    functions = [
        compiled(function, 'inductor', mode='reduce-overhead')
        for function in (model.backbone.forward_tokens, model.head)
    ]
    counters.clear()
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        step(model, *functions, images(4).cuda())
    assert counters['inductor']['cudagraph_skips'] == 0
