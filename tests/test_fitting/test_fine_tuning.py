# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A fit with fine-tuning: kept, discarded and interrupted."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest
import timm
import torch
from process_state import outputs, settings
from tiny_photos import write_photos, write_weights
from tiny_run import CLASSES

import mmclca
from mmclca.apis import TokenReductionInferencer
from mmclca.apis.probe.view_features import PhotoView
from mmclca.checkpoints.model_folder import ModelFolder
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.engine.hooks import ProgressHook
from mmclca.evaluation.calibration_file import read_calibration
from mmclca.fitting import fine_tuning

pytestmark = pytest.mark.slow


def measured(probe, photos, measure=fine_tuning.measure_accuracy):
    """Measure, with accuracy 1 for the fine-tuned model and 0.5 before."""
    measurement, logits = measure(probe, photos)
    is_trained = probe.view_features.caches[PhotoView()]._folder is None
    accuracy = 1.0 if is_trained else 0.5
    return replace(measurement, accuracy=accuracy), logits


@pytest.fixture
def fit(tmp_path, monkeypatch):
    """Fit with a short training that needs few photos."""
    recipe = fine_tuning.read_recipe()
    recipe.train_cfg.max_epochs = 4
    recipe.train_dataloader.sampler.min_samples = 32
    monkeypatch.setattr(fine_tuning, 'read_recipe', lambda: deepcopy(recipe))
    monkeypatch.setattr(fine_tuning, 'WORKERS', 0)
    monkeypatch.setattr(fine_tuning, 'MIN_PHOTOS', 16)
    monkeypatch.setattr(fine_tuning, 'MIN_PER_CLASS', 4)
    monkeypatch.setattr(fine_tuning, 'measure_accuracy', measured)
    torch.manual_seed(0)
    weights = write_weights(tmp_path)
    options = dict(weights=weights, runtime='pytorch', verbose=True)
    photos = write_photos(tmp_path)
    folder = tmp_path / 'model'
    return lambda **more: mmclca.fit(photos, folder, **options | more)


@pytest.fixture
def during(monkeypatch):
    """Streams and handlers at the first step of each training."""
    before, found = outputs(), []

    def note(hook, runner, *_, **__):
        if not runner.iter:
            found.append(outputs(before))

    monkeypatch.setattr(ProgressHook, 'before_train_iter', note)
    return found


def test_fine_tuned_model_is_kept_if_it_is_more_accurate(
    fit, during, capsys, recwarn
):
    before, process = outputs(), settings()
    model = fit()
    assert [*during, outputs(before)] == [before] * 3
    assert settings() == process
    # unclosed resources of earlier tests
    assert {x.category for x in recwarn} <= {ResourceWarning}
    done = model.facts['training']
    assert (done['epochs'], done['finetune_val']['n']) == (4, 4)
    assert done['finetune_val']['probe_accuracy'] == 0.5
    assert (model.facts['final'], model.accuracy) == ('trained', 1.0)
    printed, errors = capsys.readouterr()
    assert '50.0% -> 100.0% on 4 photos' in printed
    assert ' - INFO - ' not in printed and not errors
    weights, start = (
        open_checkpoint(str(model.folder / name))['state_dict']
        for name in ('model.pth', 'probe.pth')
    )
    frozen, tuned = (f'backbone.layers.{i}.attn.qkv.weight' for i in (0, 2))
    assert torch.equal(weights[frozen], start[frozen])
    assert not torch.equal(weights[tuned], start[tuned])
    folder = model.folder
    inferencer = TokenReductionInferencer(
        folder / 'model.pth', threshold=folder / 'threshold.json'
    )
    assert tuple(inferencer.classes) == CLASSES
    assert not [*folder.glob('training/*/*.pth')]
    calibration = read_calibration(ModelFolder(folder), len(CLASSES))
    assert len(calibration.labels) == done['finetune_val']['n']
    new = write_photos(folder.parent / 'new', seed=2) / 'elm'
    assert model.predict(new, sure=80)[0]['sure_set']
    model.add_class(new, 'larch')
    assert model.classes == [*sorted(CLASSES), 'larch']
    after = open_checkpoint(str(folder / 'model.pth'))['state_dict']
    assert torch.equal(after[tuned], weights[tuned])
    assert model.predict(new)[0].keys() >= {'pred_class', 'known'}
    with pytest.raises(ValueError, match='added after fine-tuning'):
        model.predict(new, sure=80)


def test_network_of_timm_is_fine_tuned(fit, tmp_path):
    path = tmp_path / 'test_convnext.pth'
    torch.save(timm.create_model('test_convnext').state_dict(), path)
    model = fit(weights=path)
    assert model.facts['final'] == 'trained'
    trained, start = (
        open_checkpoint(str(model.folder / name))['state_dict']
        for name in ('model.pth', 'probe.pth')
    )
    name = 'backbone.net.stem.0.weight'
    assert not torch.equal(trained[name], start[name])


def test_fine_tuned_model_is_discarded_if_it_is_less_accurate(
    fit, monkeypatch
):
    def worse(*given):
        measurement, logits = measured(*given)
        accuracy = 0.7 - 0.4 * measurement.accuracy
        return replace(measurement, accuracy=accuracy), logits

    monkeypatch.setattr(fine_tuning, 'measure_accuracy', worse)
    model = fit(pixels='half')  # as ViT-Tiny, the default
    assert model.facts['model']['method'] == 'DiffRate'
    finetune_val = model.facts['training']['finetune_val']
    assert finetune_val['accuracy'] < finetune_val['probe_accuracy']
    assert model.facts['final'] == 'probe'
    assert model.accuracy == model.facts['probe']['accuracy']


def test_fine_tuning_resumes_from_its_checkpoint(fit, monkeypatch, tmp_path):
    def pressed(self, runner, *_, **__):
        if runner.epoch == 2:  # after a checkpoint
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ProgressHook, 'after_train_iter', pressed)
        with pytest.raises(KeyboardInterrupt):
            fit()
    folder, started = tmp_path / 'model', []
    files = {path.name for path in folder.iterdir()}
    assert {'model.pth', 'threshold.json', 'fit.json'} <= files
    monkeypatch.setattr(
        ProgressHook,
        'before_train',
        lambda hook, runner: started.append(runner.epoch),
    )
    monkeypatch.setattr(ProgressHook, 'after_train_iter', lambda *_, **__: 0)
    assert fit().facts['final'] == 'trained'
    assert started == [2, 0]  # hold-out training resumes, then all photos
    facts = json.loads((folder / 'fit.json').read_text())
    assert facts['training']['seconds'] > 0


@pytest.mark.hostile
def test_fits_are_equal_with_and_without_workers(fit, monkeypatch, attack):
    monkeypatch.setattr(fine_tuning.os, 'cpu_count', lambda: 4)
    # measured times would select it, which vary if the computer is busy
    monkeypatch.setattr(fine_tuning, 'quicker_amp', lambda *_: None)
    found = []

    def attempt(_):
        for workers in (0, 2):
            monkeypatch.setattr(fine_tuning, 'WORKERS', workers)
            folder = fit(overwrite=True).folder
            files = 'photographs.csv', 'cv_probabilities.safetensors'
            found.append([(folder / name).read_bytes() for name in files])
            state = open_checkpoint(str(folder / 'model.pth'))['state_dict']
            found[-1] += [x.numpy().tobytes() for x in state.values()]
        assert found[0] == found[1], 'the fits differ'

    attack.run('fit, 0 or 2 workers: all bits equal', 1, attempt)
