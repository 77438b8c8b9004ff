# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load foreign weights by each loader of mmengine and mmpretrain."""

import argparse
import pathlib
import re
from copy import deepcopy

import mmpretrain
import pytest
import torch
from foreign_models import CACHE, config, images, ours, release, theirs
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.logging import MMLogger
from mmengine.runner import Runner
from mmpretrain.structures import DataSample
from safetensors.torch import save_file

from mmclca.checkpoints import opening, rename
from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.load import load
from mmclca.engine.runner import SafeRunner
from mmclca.registry import MODELS


@pytest.fixture
def save(tmp_path):
    """Function to save a checkpoint, which returns the path."""

    def save(checkpoint, name='weights.pth'):
        path = str(tmp_path / name)
        write = save_file if name.endswith('safetensors') else torch.save
        write(checkpoint, path)
        return path

    return save


def by_hand(cfg, path, work_dir):
    model = MODELS.build(cfg)
    load(model, path, strict=False)
    return model


def load_from(cfg, path, work_dir, runner_class=SafeRunner):
    runner = runner_class(
        cfg,
        str(work_dir),
        load_from=path,
        default_scope='mmpretrain',
        experiment_name=str(work_dir),
    )
    runner.load_or_resume()
    return runner.model


def on_classifier(cfg, path, work_dir):
    cfg = dict(cfg, init_cfg=dict(type='Pretrained', checkpoint=path))
    model = MODELS.build(cfg)
    model.init_weights()
    return model


def on_backbone(cfg, path, work_dir):
    pretrained = dict(type='Pretrained', checkpoint=path)
    backbone = dict(cfg['backbone'], init_cfg=pretrained)
    model = MODELS.build(dict(cfg, backbone=backbone))
    model.init_weights()
    return model


def get_model(cfg, path, work_dir):
    return mmpretrain.get_model(Config(dict(model=cfg)), pretrained=path)


def load_from_by_mmengine(cfg, path, work_dir):
    return load_from(cfg, path, work_dir, Runner)


OWN = [by_hand, load_from, on_classifier, on_backbone]
PLACES = [*OWN, get_model, load_from_by_mmengine]


def difference(here, there):
    """Largest differences to timm in CLS token and logits."""
    x = images()
    here = here.double().eval()
    with torch.no_grad():
        tokens = there.forward_features(x)
        cls_token = (here.backbone(x)[0] - tokens[:, 0]).abs().max()
        logits = (here(x) - there.forward_head(tokens)).abs().max()
    return cls_token, logits


@pytest.mark.parametrize('place', PLACES)
def test_timm_weights_load_by_each_loader(place, save, tmp_path):
    style = 'clip'
    there = theirs(style)
    name = 'weights.safetensors' if place in OWN else 'weights.pth'
    path = save(there.state_dict(), name)
    here = place(config(style), path, tmp_path / 'work')
    cls_token, logits = difference(here, there)
    assert cls_token < 1e-9
    assert logits < 1e-9 or place is on_backbone


@pytest.mark.parametrize('place', OWN)
def test_file_is_opened_renamed_and_reported_once(
    place, save, tmp_path, log, monkeypatch
):
    path = save(theirs().state_dict())
    steps = []

    def count(module, name):
        function = getattr(module, name)

        def counted(*arguments):
            steps.append(name)
            return function(*arguments)

        monkeypatch.setattr(module, name, counted)

    count(opening, 'read_checkpoint')
    count(rename, 'recognize')
    count(rename, 'renamed')
    place(config(), path, tmp_path / 'work')
    tensors = len(theirs().state_dict())
    assert steps == ['read_checkpoint', 'recognize', *(['renamed'] * tensors)]
    assert sum(f'{path}: ' in line for line in log) == 1


def test_release_loads_from_an_archive_name(save):
    there = theirs('deit3')
    weights = {  # names in DeiT III
        re.sub(r'ls([12])\.gamma', r'gamma_\1', key): value
        for key, value in there.state_dict().items()
    }
    path = save({'model': weights}, 'w.pth.tar')
    assert max(difference(by_hand(config('deit3'), path, None), there)) < 1e-9


@pytest.mark.parametrize('place', PLACES)
def test_own_checkpoint_loads_by_each_loader(place, save, tmp_path):
    """A classifier file also loads into a backbone."""
    saved = MODELS.build(config(cla=True))
    for parameter in saved.parameters():
        torch.nn.init.normal_(parameter)
    path = save({'state_dict': saved.state_dict(), 'meta': {}})
    here = place(config(cla=True), path, tmp_path / 'work')
    if place is on_backbone:
        saved, here = saved.backbone, here.backbone
    for name, value in here.state_dict().items():
        assert torch.equal(value, saved.state_dict()[name]), name


@pytest.mark.usefixtures('report_is_golden')
def test_release_by_the_clca_authors_loads(save, log):
    """Load best_checkpoint.pth, with optimizer, scaler and settings."""
    weights = release(theirs())
    weights['head.weight'] = torch.zeros(1000, 16)  # unused
    weights['head.bias'] = torch.zeros(1000)
    settings = argparse.Namespace(
        model='evit', keep_rate=[0.5], root=pathlib.PosixPath('data'), lr=None
    )
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(3))])
    path = save(
        dict(
            model=weights,
            optimizer=optimizer.state_dict(),
            lr_scheduler=dict(base_values=[1e-4], t_in_epochs=True),
            epoch=49,
            scaler=dict(scale=65536.0),
            args=settings,
            ema_best=None,
        )
    )
    here = by_hand(config(cla=True), path, None).double()
    head = here.head.state_dict()
    for name in head:
        theirs_ = weights[name.replace('layers.', 'ifa_head.0.')]
        assert torch.equal(head[name], theirs_.to(head[name])), name
    assert torch.equal(
        here.backbone.cache.clr, weights['clr'].float().double()
    )
    assert not any('new, not loaded' in line for line in log)


@pytest.mark.usefixtures('report_is_golden')
def test_release_by_the_clca_authors_loads_without_cla(save):
    there = theirs()
    weights = release(there, cla=False)
    here = ours(reduce_at=(1,), cache=CACHE)
    load(here, save({'model': weights}))
    linear = here.head.layers.head
    assert torch.equal(linear.weight, there.head.weight)
    assert torch.equal(here.backbone.ln1.weight, there.norm.weight)


CLA = dict(cla=True)
NEW = 'new, not loaded: head.layers.* (2'
NEW_CLA = (
    'new, not loaded: head.layers.* (14), backbone.cache.* (2); not used '
    'here: head.layers.* (2), backbone.ln1.* (2)'
)
NEW_LINEAR = 'new, not loaded: head.layers.* (2), backbone.ln1.* (2)'


@pytest.mark.parametrize(
    'options, contents, line',
    [
        ({}, lambda: theirs(num_classes=7).state_dict(), NEW),
        (CLA, lambda: theirs().state_dict(), NEW_CLA),
        ({}, lambda: {'model': release(theirs())}, NEW_LINEAR),
    ],
    ids=['classes', 'CLA', 'linear'],
)
def test_new_head_is_reported(options, contents, line, save, log):
    path = save(contents())
    here = by_hand(config(**options), path, None)
    said = '\n'.join(log)
    assert f'{path}: ' in said and line in said
    assert 'do not match' not in said
    assert line != NEW_LINEAR or here.backbone.ln1.weight.eq(1).all()


@pytest.mark.parametrize('strict, level', [(False, 'WARNING'), (True, 'INFO')])
def test_new_head_is_a_warning_in_a_start_of_training(
    strict, level, save, caplog
):
    path = save(theirs(num_classes=7).state_dict())
    here = MODELS.build(config())
    head = [name for name in here.state_dict() if name.startswith('head.')]
    logger = MMLogger.get_instance('new head')
    logger.addHandler(caplog.handler)
    load(here, path, strict, may_be_new=head)
    levels = {x.levelname for x in caplog.records if NEW in x.getMessage()}
    assert levels == {level}


# our options, timm options, and the reported tensor
WRONG = dict(
    width=(dict(dims=32), {}, r'cls_token .*\(1, 1, 16\), .* \(1, 1, 32\)'),
    deeper_file=({}, dict(depth=4), r'layers\.3\.\S+ is '),
    no_qkv_bias=({}, dict(style='miil'), r'0\.attn\.qkv\.bias is missing'),
    registers=(
        {},
        dict(reg_tokens=4, no_embed_class=True),
        'register_tokens is ',
    ),
    no_cls=({}, dict(class_token=False, global_pool='avg'), 'cls_token is mi'),
    patch_size=(
        dict(in_channels=1),
        {},
        r'projection\.weight .*\(16, 3, 8, 8\), .* \(16, 1, 8, 8\)',
    ),
    rectangle=(
        {},
        dict(img_size=(16, 24)),
        r'pos_embed .*\(1, 7, 16\), .* \(1, 17, 16\) \(7 rows, 1 ',
    ),
)


@pytest.mark.parametrize('wrong', WRONG)
def test_weights_are_refused_if_architecture_differs(wrong, save):
    options, there, says = WRONG[wrong]
    weights = theirs(**there).state_dict()
    path = save(weights)
    with pytest.raises(CheckpointError, match=says) as error:
        by_hand(config(**options), path, None)
    for name in (path, 'TokenReductionViT', *list(weights)[:6]):
        assert name in str(error.value)


@pytest.mark.parametrize(
    'weights, says',
    [
        ({'conv.weight': torch.ones(3)}, 'conv.weight'),
        ({}, 'first keys of the file: none'),
    ],
)
def test_weights_are_refused_if_they_are_of_no_vit(weights, says, save):
    with pytest.raises(CheckpointError, match=says):
        by_hand(config(), save(weights), None)


@pytest.mark.parametrize('place', PLACES)
@pytest.mark.parametrize('options', [dict(dims=32), dict(depth=5)])
def test_weights_are_refused_by_each_loader(place, options, save, tmp_path):
    path = save(theirs().state_dict())
    name = re.escape(path) if place in OWN else 'the weights does not match'
    with pytest.raises(CheckpointError, match=name):
        place(config(**options), path, tmp_path / 'work')


def test_load_state_dict_renames_a_copy():
    there = theirs()
    weights = there.state_dict()
    before = list(weights)
    for model in (ours(), ours(reduce_at=(1,), cache=CACHE)):
        model.load_state_dict(weights)
        assert list(weights) == before
    assert torch.equal(model.backbone.cache.clr, there.cls_token)
    here = ours()
    weights = {f'module.{key}': value for key, value in weights.items()}
    torch.nn.DataParallel(here).load_state_dict(weights)
    assert max(difference(here, there)) < 1e-9


def test_load_state_dict_is_strict():
    here = ours()
    with pytest.raises(CheckpointError, match=r'layers\.3\.ln1\.weight'):
        here.load_state_dict(theirs(depth=4).state_dict())
    weights = theirs(num_classes=7).state_dict()
    with pytest.raises(RuntimeError, match='size mismatch for head'):
        here.load_state_dict(weights)


@pytest.mark.parametrize('name', ['backbone.cls_token', 'head.layers.head'])
def test_part_of_a_network_needs_the_other_weights(name):
    here, there = ours(), ours()
    part = {k: x for k, x in there.state_dict().items() if k.startswith(name)}
    with pytest.raises(CheckpointError, match='complete weights first'):
        here.load_state_dict(part, strict=False)
    here.load_state_dict(theirs().state_dict())
    assert deepcopy(here).load_state_dict(part, strict=False).missing_keys
    assert here.load_state_dict(part, strict=False).missing_keys
    tensors = here.state_dict()
    assert all(torch.equal(tensors[k], x) for k, x in part.items())


def test_weights_load_into_a_tta_model(save, tmp_path):
    there = theirs()
    wrapper = dict(type='mmpretrain.AverageClsScoreTTA', module=config())
    path = save(there.state_dict())
    model = load_from(wrapper, path, tmp_path / 'work').module
    assert max(difference(model, there)) < 1e-9


class Noise(torch.utils.data.Dataset):
    """Eight fixed images of noise."""

    metainfo = dict(classes=('a', 'b'))

    def __len__(self):
        return 8

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        noise = torch.randn(3, 32, 32, generator=generator)
        sample = DataSample().set_gt_label(i % 5)
        return dict(inputs=noise, data_samples=sample)


def train(work_dir, max_epochs, **options):
    runner = SafeRunner(
        config(cla=True),
        str(work_dir),
        train_dataloader=dict(
            dataset=Noise(),
            sampler=dict(type='DefaultSampler', shuffle=False),
            batch_size=4,
            collate_fn=pseudo_collate,
        ),
        train_cfg=dict(by_epoch=True, max_epochs=max_epochs),
        optim_wrapper=dict(optimizer=dict(type='AdamW', lr=1e-2)),
        param_scheduler=dict(type='ExponentialLR', gamma=0.5, end=9),
        custom_hooks=[dict(type='mmengine.EMAHook', momentum=0.1)],
        default_scope='mmpretrain',
        experiment_name=f'{work_dir}-{max_epochs}',
        randomness=dict(seed=0),
        **options,
    )
    runner.train()
    return runner


def test_resumed_run_equals_uninterrupted_run(save, tmp_path):
    weights = save(theirs().state_dict())
    whole = train(tmp_path / 'whole', 3, load_from=weights)
    train(tmp_path / 'part', 2, load_from=weights)
    part = train(tmp_path / 'part', 3, resume=True)
    assert part.iter == whole.iter == 6
    last = [
        torch.load(tmp_path / name / 'epoch_3.pth', weights_only=False)
        for name in ('whole', 'part')
    ]
    for key in ('state_dict', 'ema_state_dict', 'optimizer'):
        torch.testing.assert_close(last[0][key], last[1][key], rtol=0, atol=0)
    histories = [c['message_hub']['log_scalars'] for c in last]
    for name in ('train/loss', 'train/lr'):
        whole_, part_ = (h[name].data for h in histories)
        assert len(part_[0]) == 6
        assert (whole_[0] == part_[0]).all() and (whole_[1] == part_[1]).all()
    average, live = last[0]['state_dict'], last[0]['ema_state_dict']
    name = 'backbone.cache.clr'  # mmengine swaps the names
    assert not torch.equal(average[name], live[f'module.{name}'])


def test_ema_starts_from_bare_weights(save, tmp_path):
    weights = theirs().state_dict()
    runner = train(tmp_path, 0, load_from=save(weights))
    ema = next(h for h in runner.hooks if type(h).__name__ == 'EMAHook')
    ema = ema.ema_model.module.backbone
    assert torch.equal(ema.cls_token, weights['cls_token'].float())
    assert torch.equal(ema.cache.clr, weights['cls_token'].float())
