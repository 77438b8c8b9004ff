# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
from mmengine.config import Config
from tiny_run import write_run

from mmclca.engine.runner import SafeRunner


@pytest.fixture(autouse=True)
def quick(quick_runner, monkeypatch):
    """Skip slow set-up: environment queries and config formatting."""
    monkeypatch.setattr('mmengine.runner.runner.collect_env', dict)
    monkeypatch.setattr('mmengine.runner.runner.get_git_hash', str)
    monkeypatch.setattr(
        'yapf.yapflib.yapf_api.FormatCode', lambda text, **_: (text, True)
    )


@pytest.fixture(scope='session')
def tiny_file(tmp_path_factory):
    """Path of the tiny config, with its images."""
    return write_run(tmp_path_factory.mktemp('tiny'))


@pytest.fixture
def config(tiny_file, tmp_path):
    """Function to read the tiny config with hooks and changed settings."""

    def config(*hooks, name='work', **settings):
        cfg = Config.fromfile(tiny_file)
        cfg.work_dir = str(tmp_path / name)
        # otherwise runs started in the same second share a visualizer
        cfg.experiment_name = f'{tmp_path.name}_{name}'
        cfg.custom_hooks = list(hooks)
        cfg.merge_from_dict(settings)
        return cfg

    return config


@pytest.fixture
def build(config):
    """Function to build a runner for the tiny config."""
    return lambda *hooks, **settings: SafeRunner.from_cfg(
        config(*hooks, **settings)
    )
