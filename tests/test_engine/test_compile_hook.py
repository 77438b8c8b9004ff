# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compiled runs give the same results as eager runs."""

import logging
from copy import deepcopy
from types import SimpleNamespace

import pytest
import torch
from installed import NEEDS_COMPILER
from mmengine import load
from mmengine.config import Config
from mmengine.hooks import Hook
from mmpretrain.structures import DataSample
from small_models import CACHE, classifier, images, vit
from small_models import build as build_model
from tiny_run import ROOT, run_python, write_run
from torch._dynamo.utils import counters

from mmclca.engine.runner import use_hook
from mmclca.registry import HOOKS

COMPILE = dict(type='mmclca.CompileHook', backend='eager')

pytestmark = [
    NEEDS_COMPILER,
    pytest.mark.usefixtures('nothing_is_compiled_yet'),
]


def graphs():
    """Number of compiled graphs."""
    return counters['stats']['unique_graphs']


@HOOKS.register_module()
class NoteGraphs(Hook):
    """Records the number of graphs and whether the model is compiled."""

    priority = 'LOWEST'

    def __init__(self):
        self.graphs, self.compiled = [], []

    def after_train_epoch(self, runner):
        self.graphs.append(graphs())

    def after_train_iter(self, runner, batch_idx, data_batch, outputs):
        compiled = 'forward_tokens' in vars(runner.model.backbone)
        self.compiled.append(compiled)


@pytest.fixture
def train(build):
    """Train the tiny config on batches with 6, 6 and 4 images."""

    def train(name, *hooks, max_epochs=3, **options):
        options['train_dataloader.batch_size'] = 6
        options['train_cfg.max_epochs'] = max_epochs
        notes = dict(type='mmclca.NoteGraphs')
        runner = build(*hooks, notes, name=name, **options)
        runner.train()
        return runner

    return train


def notes(runner):
    return next(h for h in runner.hooks if isinstance(h, NoteGraphs))


def weights(folder, epoch):
    path = folder / f'epoch_{epoch}.pth'
    return torch.load(path, weights_only=False)['state_dict']


@pytest.mark.slow
def test_resumed_run_is_the_same_and_compiles_each_shape_once(train, tmp_path):
    """Training and validation have different batch shapes."""
    ema = dict(type='EMAHook', momentum=0.5)
    train('eager', ema, max_epochs=2)
    assert graphs() == 0
    train('compiled', ema, COMPILE, max_epochs=1)
    path = str(tmp_path / 'compiled' / 'epoch_1.pth')
    options = dict(max_epochs=2, resume=True, load_from=path)
    runner = train('compiled', ema, COMPILE, **options)
    # backbone and head, for three shapes
    assert graphs() == 2 * 3
    assert len(notes(runner).graphs) == 1
    expected = weights(tmp_path / 'eager', 2)
    torch.testing.assert_close(weights(tmp_path / 'compiled', 2), expected)
    backbone, head = runner.model.backbone, runner.model.head
    assert not {'forward_tokens', 'forward'} & vars(backbone).keys()
    assert 'forward' not in vars(head)


@pytest.mark.slow
def test_compilation_waits_if_keep_rates_change(train):
    schedule = dict(type='mmclca.KeepRateScheduleHook', epochs=2)
    runner = train('run', schedule, COMPILE)
    assert notes(runner).compiled == [False] * 6 + [True] * 3
    assert notes(runner).graphs == [0, 0, 2 * 3]  # includes validation


def small_model(**options):
    reducer = dict(type='mmclca.EViT', keep_rate=0.5)
    backbone = vit(num_layers=2, reducer=reducer, reduce_at=(0,), cache=CACHE)
    return build_model(classifier(backbone, cla=True, **options))


def compile_model(model, **options):
    """Compile a model as the hook does before the first batch."""
    hook = HOOKS.build(dict(COMPILE, **options))
    runner = SimpleNamespace(
        model=model, iter=0, logger=logging.getLogger('mmclca')
    )
    hook.before_run(runner)
    hook.before_test_iter(runner, 0)
    return hook, runner


@pytest.mark.slow
def test_copy_of_compiled_model_uses_its_own_parameters():
    model = small_model().eval()
    compile_model(model)
    copied = deepcopy(model)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.mul_(1.5)
        x = images()
        plain = small_model().eval()
        plain.load_state_dict(copied.state_dict())
        torch.testing.assert_close(copied(x), plain(x))
        assert not torch.allclose(model(x), copied(x))


@pytest.mark.slow
def test_distillation_losses_are_the_same_if_compiled(tmp_path):
    teacher = classifier(vit(num_layers=2))
    path = str(tmp_path / 'teacher.pth')
    torch.save(build_model(teacher).state_dict(), path)
    loss = dict(type='mmclca.TokenDistillation')
    taught = dict(model=teacher, checkpoint=path, loss=loss)
    model = small_model(teacher=taught).train()
    x, samples = images(), [DataSample().set_gt_label(i) for i in range(2)]
    expected = model(x, samples, mode='loss')
    compile_model(model)
    losses = model(x, samples, mode='loss')
    assert graphs() == 2
    assert 'loss_distill_tokens' in losses
    torch.testing.assert_close(losses, expected)


def test_hook_replaces_and_restores_methods(monkeypatch):
    monkeypatch.setattr(torch, 'compile', lambda function, **_: function)
    mark = 'torch.compiler.cudagraph_mark_step_begin'
    monkeypatch.setattr(mark, lambda: None)
    model = small_model()
    hook, runner = compile_model(model)
    assert 'forward_tokens' in vars(model.backbone)
    assert 'forward' in vars(model.head)
    hook.after_run(runner)
    assert 'forward_tokens' not in vars(model.backbone)


def test_cuda_graphs_are_refused_if_gradients_accumulate(train):
    hook = dict(COMPILE, mode='reduce-overhead')
    counts = {'optim_wrapper.accumulative_counts': 2}
    with pytest.raises(ValueError, match='accumulative_counts=2'):
        train('graphs', hook, **counts)
    assert graphs() == 0


def test_compile_hook_refuses_models_without_backbone():
    with pytest.raises(ValueError, match='classifiers'):
        compile_model(torch.nn.Linear(2, 2))


@pytest.mark.parametrize('given', [None, [dict(type='EMAHook')]])
def test_use_hook_adds_the_hook_once(given):
    config = Config(dict(custom_hooks=given))
    for _ in range(2):
        use_hook(config, 'CompileHook')
        added = dict(type='mmclca.CompileHook')
        assert config.custom_hooks == [*(given or []), added]


@pytest.mark.slow
def test_tools_compile_with_inductor(tmp_path):
    config = write_run(tmp_path)
    fewer = config.read_text().replace('num_layers=3', 'num_layers=2')
    config.write_text(fewer)
    tools = ROOT / 'tools'
    options = ('--compile', '--no-validate')
    run_python(tools / 'train.py', 'tiny.py', *options, cwd=tmp_path)
    trained = ('tiny.py', 'work_dirs/tiny/epoch_2.pth', '--out', 'out.pkl')
    shuffle = ('--cfg-options', 'test_dataloader.sampler.shuffle=False')
    scores = []
    for flags in ((), ('--compile',)):
        command = (tools / 'test.py', *trained, *flags, *shuffle)
        log = run_python(*command, cwd=tmp_path).stdout
        assert ('Compiling backbone' in log) == bool(flags)
        samples = load(tmp_path / 'out.pkl')
        scores.append(torch.stack([s['pred_score'] for s in samples]))
    torch.testing.assert_close(*scores, rtol=1e-4, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.cuda.is_available(), reason='a CUDA device is missing'
)
def test_cuda_graphs_in_training_and_validation(train, tmp_path):
    # Adam would amplify rounding errors in zero gradients
    sgd = {'optim_wrapper.optimizer.type': 'SGD'}
    train('eager', **sgd)
    cuda_graphs = dict(type='mmclca.CompileHook', mode='reduce-overhead')
    train('compiled', cuda_graphs, **sgd)
    assert counters['inductor']['cudagraph_skips'] == 0
    found, expected = (
        weights(tmp_path / name, 3) for name in ('compiled', 'eager')
    )
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
