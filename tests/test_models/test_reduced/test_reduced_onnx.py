# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Reduced models in ONNX files and in traces of PyTorch."""

import pytest
import torch
from installed import NEEDS_COMPILER
from small_timm import photos, small_timm
from torch import nn

import mmclca
from mmclca.deployment import load_onnx
from mmclca.models import list_methods

DYNAMIC = ({0: torch.export.Dim('batch', min=1)},)


def reduced_by(method):
    model = small_timm(depth=2).float()
    return mmclca.reduce_tokens(model, method, 0.7, layers=(0, 1))


@NEEDS_COMPILER
@pytest.mark.slow
@pytest.mark.parametrize('method', list_methods())
@torch.no_grad()
def test_onnx_file_equals_pytorch(method, tmp_path):
    model, path = reduced_by(method).train(), tmp_path / 'model.onnx'
    assert mmclca.export_onnx(model, path) < 1e-4
    assert model.training
    images = photos(model, batch=5).float()
    expected = model.eval()(images)
    torch.testing.assert_close(load_onnx(path)(images), expected)


@NEEDS_COMPILER
@pytest.mark.slow
@pytest.mark.parametrize('method', list_methods())
@torch.no_grad()
def test_file_of_torch_equals_pytorch(method, tmp_path):
    model, path = reduced_by(method), tmp_path / 'model.onnx'
    images = photos(model, batch=5).float()
    options = dict(dynamo=True, dynamic_shapes=DYNAMIC, verbose=False)
    torch.onnx.export(model, (images,), path, **options)
    for batch in (images, images[:1]):
        found = load_onnx(path)(batch)
        torch.testing.assert_close(found, model(batch))


@NEEDS_COMPILER
@pytest.mark.slow
@torch.no_grad()
def test_atc_in_a_file_of_torch_takes_one_batch_size(tmp_path):
    model, path = reduced_by('ATC'), tmp_path / 'model.onnx'
    images = photos(model, batch=2).float()
    torch.onnx.export(model, (images,), path, dynamo=True, verbose=False)
    torch.testing.assert_close(load_onnx(path)(images), model(images))


@NEEDS_COMPILER
@pytest.mark.slow
@torch.no_grad()
def test_atc_in_torch_export_takes_any_batch():
    model = reduced_by('ATC')
    images = photos(model, batch=5).float()
    options = dict(dynamic_shapes=DYNAMIC)
    program = torch.export.export(model, (images[:2],), **options).module()
    torch.testing.assert_close(program(images), model(images))


@pytest.mark.parametrize('linkage', ['average', 'single'])
def test_trace_of_atc_names_what_to_use(linkage):
    model = mmclca.reduce_tokens(small_timm(), 'ATC', 0.7, linkage=linkage)
    with pytest.raises(RuntimeError, match='export_onnx') as error:
        torch.jit.trace(model, photos(model))
    assert '\n' not in str(error.value)


def test_export_of_model_without_size_names_size(tmp_path):
    path = tmp_path / 'model.onnx'
    with pytest.raises(ValueError, match='size='):
        mmclca.export_onnx(nn.Flatten(), path)
    with pytest.raises(ValueError, match='opset'):
        mmclca.export_onnx(nn.Flatten(), path, opset=23)
    assert not path.exists()
