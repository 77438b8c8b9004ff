# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A fit that trains: the second step, interrupted and gone on with."""

import json
from copy import deepcopy

import pytest
import torch
from tiny_photographs import write_photographs, write_weights
from tiny_run import CLASSES

import mmclca
from mmclca.apis import TokenReductionInferencer
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.fitting import training


@pytest.fixture
def fit(tmp_path, monkeypatch):
    """Fits a model whose training is short, and expected to pay."""
    recipe = training.read_recipe()
    recipe.train_cfg.max_epochs = 4
    recipe.train_dataloader.sampler.min_samples = 32
    monkeypatch.setattr(training, 'read_recipe', lambda: deepcopy(recipe))
    monkeypatch.setattr(training, 'WORKERS', 0)
    monkeypatch.setattr(training, 'MEASURED', ((0.5, 0.5, 0.9),))
    torch.manual_seed(0)
    weights = write_weights(tmp_path)

    def fit(per_class=4):
        photographs = tmp_path / 'photographs'
        if not photographs.exists():
            write_photographs(tmp_path, per_class)
        return mmclca.fit(photographs, tmp_path / 'model', weights=weights)

    return fit


@pytest.mark.slow
def test_trained_where_photographs_cannot_tell_how_good(fit, capsys):
    model = fit()
    done = model.facts['training']
    assert (done['epochs'], done['holdout']) == (4, None)
    assert model.facts['final'] == 'trained'
    assert model.accuracy == model.facts['probe']['accuracy']
    told = capsys.readouterr().out
    assert 'removed 80% of the errors' in told
    assert 'so few photographs cannot tell' in told
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
@pytest.mark.parametrize('share, final', [(1.0, 'trained'), (0.0, 'probe')])
def test_the_better_one_where_photographs_can(fit, monkeypatch, share, final):
    def measured(probe, photographs):
        found, logits = measure(probe, photographs)
        return dict(found, accuracy=next(accuracies)), logits

    measure, accuracies = training.measure, iter((0.5, share))
    monkeypatch.setattr(training, 'LEAST', 16)
    monkeypatch.setattr(training, 'LEAST_A_CLASS', 4)
    monkeypatch.setattr(training, 'measure', measured)
    model = fit()
    holdout = model.facts['training']['holdout']
    assert (holdout['n'], holdout['probe_accuracy']) == (4, 0.5)
    assert model.facts['final'] == final
    assert model.accuracy == (
        share if final == 'trained' else model.facts['probe']['accuracy']
    )


@pytest.mark.slow
def test_interrupted_training_is_gone_on_with(fit, monkeypatch, tmp_path):
    def pressed(self, runner, *_, **__):
        if runner.epoch == 2:  # after a checkpoint
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(
            'mmclca.fitting.screen.BarHook.after_train_iter', pressed
        )
        with pytest.raises(KeyboardInterrupt):
            fit()
    folder = tmp_path / 'model'
    assert {'model.pth', 'threshold.json', 'fit.json'} <= {
        path.name for path in folder.iterdir()
    }
    started = []
    monkeypatch.setattr(
        'mmclca.fitting.screen.BarHook.before_train',
        lambda hook, runner: started.append(runner.epoch),
    )
    monkeypatch.setattr(
        'mmclca.fitting.screen.BarHook.after_train_iter', lambda *_, **__: 0
    )
    assert fit().facts['final'] == 'trained'
    assert started == [2, 0]  # the one without some goes on, then all
    facts = json.loads((folder / 'fit.json').read_text())
    assert facts['training']['seconds'] > 0


@pytest.mark.parametrize('per_class, trained', [(4, 0.5), (1, 0.9)])
def test_not_where_it_does_not_pay_or_nobody_could_tell(
    fit, monkeypatch, capsys, per_class, trained
):
    monkeypatch.setattr(training, 'MEASURED', ((0.5, 0.5, trained),))
    model = fit(per_class)
    assert (model.facts['final'], model.facts['training']) == ('probe', None)
    assert 'Training is left out' in capsys.readouterr().out
