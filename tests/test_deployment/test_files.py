# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Exported models return PyTorch's logits for every reducer."""

import sys
from itertools import product
from unittest.mock import Mock, call

import pytest
import torch
import torch.nn.functional as F
from installed import NEEDS_COMPILER
from small_models import CACHE, REDUCERS, build, classifier, images, vit
from torch import nn

from mmclca.deployment import (
    export_onnx,
    export_pt2,
    load_onnx,
    open_session,
    quantize,
    store_in_8_bits,
)
from mmclca.deployment.program import check_logits, classifier_program
from mmclca.models import fuse
from mmclca.utils.files import remove_partial_files

onnx = pytest.importorskip('onnx', reason='extra deploy')

SIZE = (48, 48)
METADATA = dict(classes='["äsh", "oak"]', method='EViT')


def model_of(name, clca, num_layers=2, reduce_at=(0,), **options):
    """Build a model with 36 patches, which cover both cdist algorithms."""
    backbone = vit(
        num_layers,
        img_size=SIZE,
        reducer=dict(type=f'mmclca.{name}', keep_rate=0.6),
        reduce_at=reduce_at,
        cache=CACHE if clca else None,
        **options,
    )
    return build(classifier(backbone, cla=clca)).eval()


@torch.no_grad()
def check_batches(model, exported):
    for batch in (1, 5):
        x = images(batch, *SIZE)
        torch.testing.assert_close(exported(x), model(x), rtol=1e-4, atol=1e-4)


def check_onnx(model, path, **options):
    assert export_onnx(model, path, SIZE, METADATA, **options) < 1e-4
    check_batches(model, load_onnx(path))


def check_pt2(model, path):
    assert export_pt2(model, path, SIZE, METADATA) < 1e-4
    found = dict.fromkeys(METADATA, '')
    program = torch.export.load(path, extra_files=found)
    assert found == METADATA
    assert str(sys.prefix).encode() not in path.read_bytes()
    check_batches(model, program.module())


@pytest.fixture(scope='module')
def exported(exporter, tmp_path_factory):
    """Model and its ONNX file, the only file in its folder."""
    torch.manual_seed(0)
    model = model_of('TopK', True)
    path = tmp_path_factory.mktemp('onnx') / 'new' / 'model.onnx'
    check_onnx(model, path)
    assert [file.name for file in path.parent.iterdir()] == ['model.onnx']
    return model, path


def test_onnx_file_has_metadata_names_and_dynamic_batch(exported):
    _, path = exported
    session = open_session(path)
    assert session.get_session_options().intra_op_num_threads == 1
    meta = session.get_modelmeta()
    assert meta.custom_metadata_map == METADATA
    (entry,) = session.get_inputs()
    assert (entry.name, entry.shape) == ('images', ['batch', 3, *SIZE])
    assert session.get_outputs()[0].name == 'logits'
    assert str(sys.prefix).encode() not in path.read_bytes()


def test_onnx_logits_use_the_given_threads(monkeypatch):
    opened = Mock()
    opened.return_value.get_inputs.return_value = [Mock()]
    place = 'mmclca.deployment.onnx_runtime.open_session'
    monkeypatch.setattr(place, opened)
    load_onnx('a.onnx')
    load_onnx('a.onnx', 2)
    calls = [call('a.onnx', 1, None), call('a.onnx', 2, None)]
    assert opened.call_args_list == calls


@NEEDS_COMPILER
@pytest.mark.slow
def test_pt2_file_has_fused_branches(tmp_path):
    model = model_of('EViT', True, branches=2)
    names = model.state_dict().keys()
    check_pt2(model, tmp_path / 'model.pt2')
    assert model.state_dict().keys() == names
    exported = torch.export.load(tmp_path / 'model.pt2').state_dict
    assert exported.keys() == fuse(model).state_dict().keys()


@NEEDS_COMPILER
@pytest.mark.slow
@pytest.mark.parametrize(
    'name, clca',
    [*product(REDUCERS, [True]), ('EViT', False), ('KMedoids', False)],
)
def test_export_supports_every_reducer(name, clca, tmp_path):
    stages = dict(num_layers=4, reduce_at=(1, 2)) if name == 'EViT' else {}
    model = model_of(name, clca, **stages)
    check_pt2(model, tmp_path / 'model.pt2')
    check_onnx(model, tmp_path / 'model.onnx')


@NEEDS_COMPILER
@pytest.mark.slow
def test_export_supports_opset(tmp_path):
    path = tmp_path / 'model.onnx'
    check_onnx(model_of('DPCKNN', True), path, opset=21)
    versions = {o.domain: o.version for o in onnx.load(path).opset_import}
    assert versions[''] == 21


def test_int8_file_has_metadata_and_similar_logits(exported, tmp_path):
    (model, path), small = exported, tmp_path / 'int8.onnx'
    quantize(path, small)
    meta = open_session(small).get_modelmeta()
    assert METADATA.items() <= meta.custom_metadata_map.items()
    assert b'MatMulInteger' not in path.read_bytes()
    assert b'MatMulInteger' in small.read_bytes()
    x = images(8, *SIZE)
    with torch.no_grad():
        expected = model(x)
    error = (load_onnx(small)(x) - expected).abs().max()
    assert 1e-5 < error < 0.2 * expected.std()


def test_file_with_weights_in_8_bits_is_similar(
    exported, tmp_path, monkeypatch
):
    (model, path), small = exported, tmp_path / 'small.onnx'
    monkeypatch.setattr('mmclca.deployment.small_weights.LEAST', 100)
    store_in_8_bits(path, small)
    assert open_session(small).get_modelmeta().custom_metadata_map == METADATA
    weights = onnx.load(small).graph.initializer
    kinds = {onnx.TensorProto.DataType.Name(x.data_type) for x in weights}
    assert {'INT8', 'FLOAT16'} < kinds
    x = images(8, *SIZE)
    with torch.no_grad():
        expected = model(x)
    error = (load_onnx(small)(x) - expected).abs().max()
    assert 1e-5 < error < 0.05 * expected.std()


@NEEDS_COMPILER
@pytest.mark.slow
def test_nearest_score_equals_pytorch(tmp_path):
    config = classifier(vit(2, img_size=SIZE))
    head = dict(type='mmclca.NearestLinearHead', num_references=40)
    config['head'].update(head)
    model, path = build(config).eval(), tmp_path / 'model.onnx'
    drawn = torch.randn_like(model.head.references)
    model.head.references.copy_(F.normalize(drawn, dim=1))
    assert export_onnx(model, path, SIZE, METADATA) < 1e-4
    x = images(5, *SIZE)
    expected = model.head.nearest(model.extract_feat(x)).detach()
    logits, found = load_onnx(path)(x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(logits, model(x), rtol=1e-4, atol=1e-4)
    quantize(path, path)
    assert [x.name for x in open_session(path).get_outputs()][1] == 'nearest'
    # the references are not quantized
    assert model.head.references.numpy().tobytes() in path.read_bytes()
    program = classifier_program(model, SIZE).module()
    torch.testing.assert_close(program(x)[1], expected)


class OtherWhenTraced(nn.Module):
    """Model with a traced graph that differs by 0.001."""

    def forward(self, x):
        y = x.mean(dim=(2, 3))
        return y + 1e-3 if torch.compiler.is_compiling() else y


@pytest.mark.parametrize(
    'write', [pytest.param(export_onnx, marks=pytest.mark.slow), export_pt2]
)
def test_earlier_file_is_kept_if_exported_logits_differ(
    write, exporter, tmp_path
):
    path = tmp_path / 'model.file'
    path.write_text('an earlier one')
    with pytest.raises(ValueError, match='logits'):
        write(OtherWhenTraced(), path, (4, 4), {})
    assert path.read_text() == 'an earlier one'
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize('wrong', [1, 3])
def test_exported_logits_are_compared_at_two_batch_sizes(wrong):
    def exported(x):
        return x.mean(dim=(2, 3)) + 1e-3 * (len(x) == wrong)

    with pytest.raises(ValueError, match='logits'):
        check_logits(OtherWhenTraced(), exported, (4, 4))


def test_export_is_refused_if_onnxscript_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'onnxscript', None)
    with pytest.raises(ImportError, match=r'mmclca\[deploy\]'):
        export_onnx(OtherWhenTraced(), tmp_path / 'model.onnx', (4, 4))


def test_only_matching_partial_files_are_removed(tmp_path):
    digits = 'a' * 32
    names = [f'.model.{digits}.onnx', f'.other.{digits}.onnx', 'model.onnx']
    for name in (*names, f'.model.{digits}.pth'):
        (tmp_path / name).touch()
    remove_partial_files(tmp_path, 'model', '.onnx')
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*names[1:], f'.model.{digits}.pth'}
