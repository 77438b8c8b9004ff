# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Trained and frozen parameters per scope, and small checkpoints."""

import re
from pathlib import Path

import pytest
import torch
from mmengine.hooks import EMAHook
from mmengine.runner import load_checkpoint
from small_models import PATCH_CONVNET, RESMLP, arch, vit
from tiny_run import ROOT, run_tool

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.engine.runner import SafeRunner
from mmclca.models.tuning import tune_only
from mmclca.registry import MODELS

REDUCER = dict(type='mmclca.SiT', keep_rate=0.5)
BACKBONE = dict(  # changes to the tiny config, with all trainable parts
    dist_token=True,
    layer_scale_init_value=1e-4,
    stem=dict(type='mmclca.HMLPStem', norm_cfg=dict(type='BN')),
    patch_size=16,
    reducer=REDUCER,
)
ALWAYS = r'head\.|backbone\.(reducer|cache)\.'
LAYER = r'backbone\.layers\.\d\.'
TRAINS = dict(  # parameters trained in the authors' code, by analogy
    attn=rf'{LAYER}attn\.(qkv|proj)\.|backbone\.pos_embed|{ALWAYS}',
    ffn=rf'{LAYER}ffn\.layers\.|backbone\.pos_embed|{ALWAYS}',
    norm=rf'{LAYER}ln[12]\.|backbone\.ln1\.|backbone\.pos_embed|{ALWAYS}'
    r'|backbone\.patch_embed\.projection\.[147]\.',
    head=ALWAYS,
    full='',
)
LORA = dict(
    type='mmclca.LoRAModel', rank=2, alpha=4, targets=[dict(type='.*qkv')]
)
EMA = dict(type='EMAHook', momentum=0.5)
LAYER_DECAY = dict(
    optimizer=dict(weight_decay=0.05),
    constructor='LearningRateDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.5),
)


@pytest.fixture
def tuned(config):
    """Build a runner for the tiny config with a scope."""

    def tuned(scope, *hooks, lora=False, **options):
        scope = dict(type='mmclca.TuningScopeHook', scope=scope)
        cfg = config(scope, *hooks, train_cfg=dict(max_epochs=1), **options)
        cfg.model.backbone.update(BACKBONE)
        cfg.model.head.type = 'mmclca.DistilledHead'
        if lora:
            cfg.model = dict(LORA, module=cfg.model.to_dict())
        return SafeRunner.from_cfg(cfg)

    return tuned


def changed(runner):
    """Train; return the names of changed parameters and buffers."""
    runner.model.init_weights()
    runner.model._is_init = True
    before = {k: v.clone() for k, v in runner.model.state_dict().items()}
    runner.train()
    after = runner.model.state_dict()
    return {k for k in before if not torch.equal(before[k], after[k])}


def expected(model, scope):
    """Names of trained parameters and of their BatchNorm statistics."""
    names = [n for n, _ in model.named_parameters()]
    found = {n for n in names if re.match(TRAINS[scope], n)}
    moving = ('running_mean', 'running_var', 'num_batches_tracked')
    for name in list(found):
        stem = name.rpartition('.')[0]
        own = {f'{stem}.{buffer}' for buffer in moving}
        found |= own & model.state_dict().keys()
    return found


@pytest.mark.parametrize('scope', TRAINS)
def test_only_parameters_in_scope_change(tuned, scope):
    runner = tuned(scope)
    assert changed(runner) == expected(runner.model, scope)


def test_scope_holds_with_layer_decay_ema_and_bfloat16(tuned):
    wrapper = dict(LAYER_DECAY, type='mmclca.BF16OptimWrapper')
    runner = tuned('attn', EMA, optim_wrapper=wrapper)
    trained = expected(runner.model, 'attn')
    assert changed(runner) == trained
    (ema,) = (hook for hook in runner.hooks if isinstance(hook, EMAHook))
    own = runner.model.state_dict()
    for name, value in ema.ema_model.module.state_dict().items():
        assert name in trained or torch.equal(value, own[name]), name


def classifier(backbone, num_classes=5, in_channels=24):
    head = dict(num_classes=num_classes, in_channels=in_channels)
    head['type'] = 'LinearClsHead'
    return dict(type='ImageClassifier', backbone=backbone, head=head)


def test_trained_parameter_count_equals_paper():
    backbone = vit(img_size=384, patch_size=16) | dict(arch='deit-small')
    with torch.device('meta'):
        model = MODELS.build(classifier(backbone, 1000, 384))
    total = sum(p.numel() for p in model.parameters())
    assert tune_only(model, 'attn') == (7_702_888, total)


CAIT = dict(type='mmclca.CaiT', arch=arch(2, 24), img_size=32, patch_size=8)


@pytest.mark.parametrize(
    'backbone, attention',
    [
        (CAIT, r'(class_)?layers\.\d\.attn\.(?!gamma)'),
        (RESMLP, r'layers\.\d\.mix\.'),
        (PATCH_CONVNET, r'pool\.layer\.attn\.'),
        (
            dict(type='TIMMBackbone', model_name='test_vit'),
            r'timm_model\.blocks\.\d\.attn\.',
        ),
    ],
)
def test_attn_scope_finds_attention_in_other_backbones(backbone, attention):
    model = MODELS.build(classifier(backbone))
    tune_only(model, 'attn')
    for name, parameter in model.named_parameters():
        own = rf'head\.|backbone\.({attention}|(timm_model\.)?pos_embed)'
        assert parameter.requires_grad == bool(re.match(own, name)), name


def test_scope_is_refused_if_model_lacks_such_parts():
    model = classifier(RESMLP)
    timm = dict(type='TimmClassifier', model_name='test_vit', num_classes=5)
    for config, scope in ((model, 'atn'), (model, 'lora'), (timm, 'head')):
        with pytest.raises(ValueError, match=scope):
            tune_only(MODELS.build(config), scope)
    for module, term in ((timm, 'TimmClassifier'), (model, 'linear layer')):
        with pytest.raises(ValueError, match=term):
            MODELS.build(dict(LORA, module=module))
    count, total = tune_only(MODELS.build(timm), 'full')
    assert count == total


def test_lora_trains_its_parameters_head_and_reducer(tuned, tmp_path):
    saving = dict(type='mmclca.SaveTrainableHook')
    # this option builds the optimizer from trainable parameters only
    wrapper = dict(paramwise_cfg=dict(flat_decay_mult=0.0))
    runner = tuned('lora', saving, lora=True, optim_wrapper=wrapper)
    own = rf'{LAYER}attn\.qkv\.lora_|{ALWAYS}'
    names = runner.model.state_dict().keys()
    trained = {name for name in names if re.match(own, name)}
    assert changed(runner) == trained and 'head' in str(trained)
    small = torch.load(tmp_path / 'work/epoch_1.pth', weights_only=False)
    buffers = {n for n, _ in runner.model.module.named_buffers()}
    assert small['state_dict'].keys() == trained | buffers & {*names}
    path = str(tmp_path / 'work/epoch_1.pth')
    other = tuned('lora', name='other', lora=True, load_from=path)
    other.load_or_resume()
    ours, theirs = (r.model.state_dict() for r in (runner, other))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize('scope', ['lora', 'attn', 'head'])
def test_mmengine_refuses_small_checkpoints_without_base(
    scope, tuned, tmp_path
):
    """It does not know the base; the rest of the model would be random."""
    saving = dict(type='mmclca.SaveTrainableHook')
    runner = tuned(scope, saving, lora=scope == 'lora')
    runner.train()
    path = str(tmp_path / 'work/epoch_1.pth')
    model = tuned(scope, name='other', lora=scope == 'lora').model
    with pytest.raises(CheckpointError, match='complete weights first'):
        load_checkpoint(model, path)
    trained = runner.model.state_dict()
    other = {k: x * (not k.startswith('head.')) for k, x in trained.items()}
    model.load_state_dict(other)
    load_checkpoint(model, path)  # as the base is loaded now
    loaded = model.state_dict()
    assert all(torch.equal(loaded[name], trained[name]) for name in trained)


def test_lora_loads_weights_of_a_plain_model(tuned, tmp_path):
    plain, lora = tuned('full'), tuned('lora', name='b', lora=True)
    weights = plain.model.state_dict()
    lora.model.load_state_dict(weights, strict=False)
    loaded = lora.model.state_dict()
    for name, value in weights.items():
        inner = name.replace('.qkv.', '.qkv.original_layer.')
        assert torch.equal(loaded[inner], value), name


@pytest.mark.slow
def test_small_checkpoints_share_one_base_file(config, tmp_path, monkeypatch):
    scope = dict(type='mmclca.TuningScopeHook', scope='attn')
    config(scope, EMA).dump(tmp_path / 'tiny.py')
    monkeypatch.chdir(tmp_path)

    def train(name, *options):
        words = ('tiny.py', '--work-dir', f'runs/{name}', *options)
        run_tool(monkeypatch, ROOT / 'tools/train.py', *words)
        return open_checkpoint(f'runs/{name}/epoch_2.pth')

    whole = train('whole')
    small = train('small', '--save-trainable')
    again = train('again', '--save-trainable')
    assert len(list(Path('runs').glob('base_*.pth'))) == 1
    part = torch.load('runs/small/epoch_2.pth', weights_only=False)
    assert part['state_dict'].keys() < whole['state_dict'].keys()
    for kind in ('state_dict', 'ema_state_dict'):
        assert small[kind].keys() == whole[kind].keys()
        for name, value in whole[kind].items():
            assert torch.equal(small[kind][name], value), name
    Path('runs/again/epoch_2.pth').unlink()
    Path('runs/again/last_checkpoint').write_text('runs/again/epoch_1.pth')
    resumed = train('again', '--save-trainable', '--resume')
    for name, value in again['state_dict'].items():
        assert torch.equal(resumed['state_dict'][name], value), name
    words = ('tiny.py', 'runs/small/epoch_2.pth')
    run_tool(monkeypatch, ROOT / 'tools/test.py', *words)
    (base,) = Path('runs').glob('base_*.pth')
    base.unlink()
    with pytest.raises(FileNotFoundError, match=f'missing .*{base.name}'):
        open_checkpoint('runs/small/epoch_2.pth')


def test_save_trainable_is_refused_if_nothing_is_frozen(tuned):
    runner = tuned('full', dict(type='mmclca.SaveTrainableHook'))
    with pytest.raises(ValueError, match='frozen'):
        runner.train()
