# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A fit that trains: the second step, interrupted and gone on with."""

import json
from copy import deepcopy

import pytest
import torch
from process_state import outputs, settings
from tiny_photographs import write_photographs, write_weights
from tiny_run import CLASSES

import mmclca
from mmclca.apis import TokenReductionInferencer
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.fitting import training


def measured(probe, photographs, measure=training.measure):
    """What is trained, whose features are not kept, names all right, the
    probe half."""
    found, logits = measure(probe, photographs)
    is_trained = probe._caches[1.0]._folder is None
    return dict(found, accuracy=1.0 if is_trained else 0.5), logits


@pytest.fixture
def fit(tmp_path, monkeypatch):
    """Fits a model whose training is short, with photographs enough."""
    recipe = training.read_recipe()
    recipe.train_cfg.max_epochs = 4
    recipe.train_dataloader.sampler.min_samples = 32
    monkeypatch.setattr(training, 'read_recipe', lambda: deepcopy(recipe))
    monkeypatch.setattr(training, 'WORKERS', 0)
    monkeypatch.setattr(training, 'MIN_PHOTOS', 16)
    monkeypatch.setattr(training, 'MIN_PER_CLASS', 4)
    monkeypatch.setattr(training, 'measure', measured)
    torch.manual_seed(0)
    weights = write_weights(tmp_path)

    def fit(per_class=4):
        photographs = tmp_path / 'photographs'
        if not photographs.exists():
            write_photographs(tmp_path, per_class)
        return mmclca.fit(photographs, tmp_path / 'model', weights=weights)

    return fit


@pytest.fixture
def during(monkeypatch):
    """Streams and handlers at the first step of each training."""
    found = []
    monkeypatch.setattr(
        'mmclca.engine.hooks.ProgressHook.before_train_iter',
        lambda hook, runner, *_: runner.iter or found.append(outputs()),
    )
    return found


@pytest.mark.slow
def test_trained_where_it_helps(fit, during, capsys, recwarn):
    before = outputs(), settings()
    model = fit()
    assert (outputs(), settings()) == before and during == [before[0]] * 2
    assert not [str(warning) for warning in recwarn]
    done = model.facts['training']
    assert (done['epochs'], done['holdout']['n']) == (4, 4)
    assert done['holdout']['probe_accuracy'] == 0.5
    assert (model.facts['final'], model.accuracy) == ('trained', 1.0)
    told, errors = capsys.readouterr()
    assert '] ' not in told and not errors  # of mmengine
    assert 'kept' in told and '50.0% -> 100.0% on 4 photos' in told
    weights, before = (
        open_checkpoint(str(model.folder / name))['state_dict']
        for name in ('model.pth', 'probe.pth')
    )
    frozen, name = (f'backbone.layers.{i}.attn.qkv.weight' for i in (0, 2))
    assert torch.equal(weights[frozen], before[frozen])
    assert not torch.equal(weights[name], before[name])
    folder = model.folder
    inferencer = TokenReductionInferencer(
        folder / 'model.pth', reject=folder / 'threshold.json'
    )
    assert tuple(inferencer.classes) == CLASSES
    assert not [*folder.glob('training/*/*.pth')]
    new = write_photographs(folder.parent / 'new', seed=2) / 'elm'
    model.add_class(new, 'larch')
    assert model.classes == [*sorted(CLASSES), 'larch']
    after = open_checkpoint(str(folder / 'model.pth'))['state_dict']
    assert torch.equal(after[name], weights[name])  # as it was trained
    assert model.predict(new)[0].keys() >= {'pred_class', 'known'}


@pytest.mark.slow
def test_not_kept_where_it_does_not_help(fit, monkeypatch):
    def worse(*given):
        found, logits = measured(*given)
        return dict(found, accuracy=0.7 - 0.4 * found['accuracy']), logits

    monkeypatch.setattr(training, 'measure', worse)
    model = fit()
    holdout = model.facts['training']['holdout']
    assert holdout['accuracy'] < holdout['probe_accuracy']
    assert model.facts['final'] == 'probe'
    assert model.accuracy == model.facts['probe']['accuracy']


@pytest.mark.slow
def test_interrupted_training_is_gone_on_with(fit, monkeypatch, tmp_path):
    def pressed(self, runner, *_, **__):
        if runner.epoch == 2:  # after a checkpoint
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(
            'mmclca.engine.hooks.ProgressHook.after_train_iter', pressed
        )
        with pytest.raises(KeyboardInterrupt):
            fit()
    folder = tmp_path / 'model'
    assert {'model.pth', 'threshold.json', 'fit.json'} <= {
        path.name for path in folder.iterdir()
    }
    started = []
    monkeypatch.setattr(
        'mmclca.engine.hooks.ProgressHook.before_train',
        lambda hook, runner: started.append(runner.epoch),
    )
    monkeypatch.setattr(
        'mmclca.engine.hooks.ProgressHook.after_train_iter', lambda *_, **__: 0
    )
    assert fit().facts['final'] == 'trained'
    assert started == [2, 0]  # the one without some goes on, then all
    facts = json.loads((folder / 'fit.json').read_text())
    assert facts['training']['seconds'] > 0


def test_left_out_where_nothing_could_tell(fit, capsys):
    model = fit(3)
    assert (model.facts['final'], model.facts['training']) == ('probe', None)
    assert 'skipped: the median class' in capsys.readouterr().out
