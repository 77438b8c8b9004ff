# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Exports that the installed torch cannot do."""

import pytest
import torch
from installed import NEEDS_COMPILER
from small_timm import small_timm

import mmclca
from mmclca.engine.hooks import CompileHook
from mmclca.utils.torch_versions import has_torch, require_torch


@pytest.fixture
def export(tmp_path, monkeypatch):
    """Export a model with an earlier torch."""

    def run(version, method):
        monkeypatch.setattr(torch, '__version__', version)
        model = mmclca.reduce_tokens(small_timm(depth=1).float(), method, 0.5)
        mmclca.export_onnx(model, tmp_path / 'model.onnx')

    return run


@pytest.mark.parametrize(
    ('version', 'method', 'needed'),
    [
        ('2.4.0+cpu', 'EViT', '2.8'),
        pytest.param('2.10.1', 'ATC', '2.11', marks=NEEDS_COMPILER),
    ],
)
def test_export_is_refused_with_the_needed_torch(
    export, tmp_path, version, method, needed
):
    pytest.importorskip('onnxscript')
    with pytest.raises(ImportError, match=f'{needed} or later') as error:
        export(version, method)
    assert version in str(error.value) and '\n' not in str(error.value)
    assert not [*tmp_path.iterdir()]


def test_compilation_is_refused_with_the_needed_torch(monkeypatch):
    monkeypatch.setattr(torch, '__version__', '2.7.1')
    with pytest.raises(ImportError, match=r'2\.8 .*2\.7\.1'):
        CompileHook().before_run(None)


def test_development_versions_count_as_releases(monkeypatch):
    monkeypatch.setattr(torch, '__version__', '2.8.0.dev20260101+cu128')
    assert has_torch('2.8') and not has_torch('2.8.1')
    require_torch('2.8', 'this', 'that')
