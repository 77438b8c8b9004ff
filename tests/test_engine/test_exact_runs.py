# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Runs with the same seed are equal in every bit, also if they are killed."""

from itertools import cycle

import pytest
import small_selfsup as small
import torch
from hostile import few_and_many
from killed_runs import NEVER, Kill, draw_kill, train
from mmpretrain import get_model
from small_backbones import BACKBONES, model_of
from small_models import CACHE, REDUCERS, build, classifier, vit
from tiny_run import write_run
from torch.utils._pytree import keystr, tree_flatten_with_path

BASE = """
_base_ = 'tiny.py'
custom_imports = dict(imports='toy_backbones')
load, resize, pack = _base_.train_dataloader.dataset.pipeline
cache = dict(type='mmclca.CacheImages', transforms=[load, resize])
crop = dict(type='RandomResizedCrop', scale=32)
train_dataloader = dict(dataset=dict(pipeline=[cache, crop, pack]))
model = dict(
    backbone=dict(drop_rate=0.1, drop_path_rate=0.2),
    train_cfg=dict(augments=dict(type='Mixup', alpha=0.8)))
train_cfg = dict(max_epochs=3)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=6),
    dict(type='CosineAnnealingLR', T_max=3)]
optim_wrapper = dict(optimizer=dict(lr=0.01), clip_grad=dict(max_norm=9.0))
default_hooks = dict(checkpoint=dict(
    type='CheckpointHook', interval=1, max_keep_ckpts=2, save_best='auto'))
average = dict(type='EMAHook', momentum=0.1)
"""
AVERAGE = 'custom_hooks = [average]\n'
WORKERS = "train_dataloader['num_workers'] = 2\n"
NO_SEED = 'randomness = dict(seed=None)\n'
ENDLESS = "train_dataloader['sampler'] = dict(type='InfiniteSampler')\n"
INSIDE = """
default_hooks['checkpoint'].update(interval=3, by_epoch=False)
"""
ITERATIONS = (
    INSIDE
    + """
log_processor = dict(by_epoch=False)
train_cfg = dict(_delete_=True, by_epoch=False, max_iters=14, val_interval=4)
"""
)
GRAFIT = """
custom_hooks = [dict(type='mmclca.BankHook')]
views = dict(type='MultiView', num_views=2, transforms=[[crop]])
train_dataloader['dataset']['pipeline'][1] = views
model = dict(
    type='mmclca.Grafit', head=None, num_views=2, hidden=8, num_classes=4,
    backbone=dict(cache=None))
"""
LORA = """
custom_hooks = [dict(type='mmclca.TuningScopeHook', scope='lora'), average]
model = dict(
    _delete_=True, type='mmclca.LoRAModel', rank=2, alpha=4,
    targets=[dict(type='.*qkv')], module=dict(_base_.model, backbone=dict(
        _base_.model.backbone, drop_path_rate=0.2)))
"""
TAUGHT = """
model = dict(
    type='mmclca.TokenReductionClassifier', train_cfg=None,
    backbone=dict(reducer=dict(type='mmclca.DynamicViT')),
    teacher=dict(
        model='tiny.py', checkpoint='teacher.pth',
        loss=dict(type='mmclca.DeiTDistillation', kind='soft', tau=2.0)))
train_dataloader['sampler'] = dict(
    type='mmclca.MinLengthSampler', min_samples=24, _delete_=True)
"""
SCALED = """
optim_wrapper.update(
    type='AmpOptimWrapper', loss_scale=dict(init_scale=64., growth_interval=3))
sampler = dict(type='mmclca.RepeatAugSampler', _delete_=True)
train_dataloader['sampler'] = sampler
"""
PLATEAU = """
param_scheduler = dict(
    type='ReduceOnPlateauLR', monitor='accuracy/top1', patience=0)
train_cfg['val_interval'] = 2
default_hooks['checkpoint'].update(
    type='mmclca.AtomicCheckpointHook', keep_last_best=True)
"""
PRETRAINED = """
crop['scale'] = 64
data_preprocessor = dict(
    _delete_=True, type='SelfSupDataPreprocessor', mean=[127.5], std=[127.5])
"""


def with_model(model, text=''):
    """Return the text of a config with another model."""
    return f'{text}\nmodel = dict(_delete_=True, **{model})\n'


def with_reducer(name):
    """Return a classifier with a reducer."""
    reducer = dict(type=f'mmclca.{name}', keep_rate=0.5)
    places = dict(reducer=reducer, reduce_at=(1, 2), cache=CACHE)
    return classifier(vit(4, **places, drop_rate=0.1), True, num_classes=4)


PRETRAINING = dict(
    mae=small.MAE,
    mirl=small.mirl(),
    distilled_mae=small.distilled('wide.pth', small.ATTENTION, small.HIDDEN),
)
MODELS = {
    **{name: with_model(with_reducer(name)) for name in REDUCERS},
    **{name: with_model(model_of(name)) for name in BACKBONES},
    **{k: with_model(x, PRETRAINED) for k, x in PRETRAINING.items()},
    'grafit': GRAFIT,
}
# config and options; two processes if the name says so
VARIANTS = dict(
    average=[AVERAGE],
    inside=[WORKERS + INSIDE + NO_SEED],
    passes=[WORKERS + ITERATIONS],
    endless=[ITERATIONS + ENDLESS],
    two=[INSIDE + WORKERS + AVERAGE],
    grafit=[GRAFIT],
    lora=[LORA, '--save-trainable'],
    taught=[TAUGHT],
    bf16=[INSIDE, '--amp=bf16'],
    scaled=[SCALED],
    masked=[WORKERS + MODELS['mirl'], '--no-validate'],
    restarted=[WORKERS, '--no-persistent-workers'],
    plateau=[PLATEAU],
    two_passes=[ITERATIONS + GRAFIT],
)
STORED = ('state_dict', 'ema_state_dict', 'optimizer', 'param_schedulers')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Folder with images, the tiny config and the weights of teachers."""
    folder = tmp_path_factory.mktemp('exact')
    teacher = get_model(str(write_run(folder)))
    torch.save(teacher.state_dict(), folder / 'teacher.pth')
    wide = build(small.encoder(arch=small.WIDE))
    torch.save(wide.state_dict(), folder / 'wide.pth')
    return folder


def command(work_dir, text, *words):
    """Write a config; return the words to train in ``work_dir``."""
    work_dir.parent.mkdir(exist_ok=True)
    config = work_dir.parent / 'config.py'
    config.write_text(BASE.replace('tiny.py', '../tiny.py') + text)
    return [str(config), '--work-dir', str(work_dir), *words]


def stored(work_dir):
    """Return all values in the checkpoints of a run by name, and its seed."""
    found, seeds = {}, set()
    for file in work_dir.glob('*.pth'):
        checkpoint = torch.load(file, weights_only=False)
        seeds.add(checkpoint['meta']['seed'])
        parts = {key: checkpoint.get(key) for key in STORED}
        for path, value in tree_flatten_with_path(parts)[0]:
            found[file.name + keystr(path)] = value
    (seed,) = seeds
    return found, seed


def check_equal(one, other, title):
    """Compare what two runs have stored."""
    different = sorted(one.keys() ^ other.keys())
    for name in one.keys() & other.keys():
        is_tensor = torch.is_tensor(one[name])
        equal = torch.equal if is_tensor else lambda a, b: a == b
        if not equal(one[name], other[name]):
            different.append(name)
    assert not different, f'{title}: {different[:3]}'


def check_resumed(folder, name, kills, start='fork'):
    """Kill and resume a run, and compare it with an uninterrupted one."""
    text, *words = VARIANTS[name]
    processes = 1 + name.startswith('two')
    words += ['--launcher', 'pytorch'] * (processes > 1)
    place = folder / f'{name}_{kills}' / 'work'
    again = command(place, text, *words, '--resume')
    for kill in kills:
        train(folder, again, processes, kill, start)
    assert ends(folder, again, processes, start), f'{name} cannot be resumed'
    found, seed = stored(place)
    whole = folder / f'{name}_{seed}_whole' / 'work'
    if not whole.exists():
        seeded = '--cfg-options', f'randomness.seed={seed}'
        once = command(whole, text, *words, *seeded)
        assert ends(folder, once, processes, start)
    check_equal(found, stored(whole)[0], name)


def ends(folder, words, processes=1, start='fork'):
    """Train to the end; a fork of a process with threads may crash."""
    tries = range(3)
    return any(train(folder, words, processes, NEVER, start) for _ in tries)


@few_and_many(1, 60)
def test_resumed_run_equals_uninterrupted_run_if_killed(folder, attack, tries):
    names = cycle(VARIANTS)

    def attempt(random):
        kills = [draw_kill(random) for _ in range(random.choice((1, 1, 2)))]
        check_resumed(folder, next(names), kills)

    attack.run('kill -9 and --resume: all bits equal', tries, attempt)


@few_and_many(1, len(MODELS))
def test_runs_are_equal_with_and_without_workers(folder, attack, tries):
    names = iter(MODELS)

    def attempt(_):
        name, found = next(names), []
        for workers in ('', WORKERS):
            place = folder / f'{name}{len(found)}' / 'work'
            text = MODELS[name] + workers + "train_cfg['max_epochs'] = 1\n"
            words = command(place, text, '--no-validate')
            assert ends(folder, words), f'{name} fails'
            found.append(stored(place)[0])
        check_equal(*found, name)

    attack.run('same seed, 0 or 2 workers: all bits equal', tries, attempt)


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.cuda.is_available(), reason='a CUDA device is missing'
)
def test_resumed_run_equals_uninterrupted_run_on_a_gpu(folder, monkeypatch):
    monkeypatch.setenv('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
    text = WORKERS + INSIDE + AVERAGE + SCALED
    text += 'randomness = dict(deterministic=True)'
    monkeypatch.setitem(VARIANTS, 'gpu', [text])
    check_resumed(folder, 'gpu', [Kill(call=40)], 'spawn')
