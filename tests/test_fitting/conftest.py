# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""One fitted model, shared by all tests, and copies of it."""

import shutil
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from types import SimpleNamespace

import pytest
import torch
from mmengine.logging import MMLogger
from process_state import kept, outputs, settings
from tiny_photos import write_photos, write_weights
from tiny_run import exit_code

import mmclca
from mmclca.apis.probe import probe, view_features
from mmclca.cli.main import main
from mmclca.fitting import FittedModel


@pytest.fixture(scope='session')
def fit():
    """Fit with the options shared by these tests, without fine-tuning."""

    def fit(place, out=None, **options):
        weights = place / 'tiny.safetensors'
        fixed = dict(runtime='pytorch', budget='0.02GMACs', probe_only=True)
        fixed['verbose'] = True
        options = dict(fixed, weights=weights) | options
        photos = place / 'photographs'
        return mmclca.fit(photos, out or place / 'model', **options)

    return fit


@pytest.fixture(scope='session')
def noted_fit(fit):
    """Fit, and note the calls and the state of the process."""

    def noted_fit(*given, **options):
        note = SimpleNamespace(states=[], calls=[])

        def counted(name, function):
            def counting(*args, **options):
                note.calls.append(name)
                note.states.append(outputs(note.states[0]))
                return function(*args, **options)

            return counting

        def note_state():
            note.states.append(outputs(note.states and note.states[0]))
            current = MMLogger.get_current_instance().name
            return [settings(), current]

        with (
            kept(),
            pytest.MonkeyPatch.context() as patch,
            redirect_stdout(StringIO()) as screen,
            redirect_stderr(StringIO()) as errors,
            warnings.catch_warnings(record=True) as note.warned,
        ):
            for module, name in (
                (probe, 'load_classifier'),
                (view_features, 'compute_sha256'),
            ):
                function = counted(name, vars(module)[name])
                patch.setattr(module, name, function)
            MMLogger.get_instance('foreign')
            note.before = note_state()
            fit(*given, **options)
            note.after = note_state()
        note.printed, note.errors = screen.getvalue(), errors.getvalue()
        return note

    return noted_fit


@pytest.fixture(scope='session')
def place(tmp_path_factory, noted_fit):
    """Folder with photos in train and test, weights, and their ``model``.

    ``larch`` has photos of another class.
    """
    folder = tmp_path_factory.mktemp('fit')
    (folder / 'photographs').mkdir()
    train = write_photos(folder / 'train')
    test = write_photos(folder / 'test', per_class=2, seed=1)
    for photos in (train, test):
        photos.rename(folder / 'photographs' / photos.parent.name)
    new = write_photos(folder / 'new', seed=2)
    (new / 'elm').rename(folder / 'larch')
    torch.manual_seed(0)
    write_weights(folder)
    return folder


@pytest.fixture(scope='session')
def noted(place, noted_fit):
    """Notes of the fit that wrote the model."""
    return noted_fit(place)


@pytest.fixture
def copy(place, noted, tmp_path):
    """Copy of the model for changes."""
    shutil.copytree(place / 'model', tmp_path / 'model')
    return FittedModel(tmp_path / 'model')


@pytest.fixture
def run(monkeypatch):
    """Run a command line and return its exit code."""

    def run(*words):
        monkeypatch.setattr(sys, 'argv', ['mmclca', *map(str, words)])
        return exit_code(main)

    return run
