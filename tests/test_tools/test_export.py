# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json
from functools import partial

import onnxruntime
import pytest
import torch
from tiny_export import EXPORT, write_model
from tiny_run import CLASSES, exit_code, run_tool

import mmclca
from mmclca.deployment.program import noise


@pytest.fixture
def export(monkeypatch):
    return partial(run_tool, monkeypatch, EXPORT)


def check_facts(facts):
    assert json.loads(facts['classes']) == list(CLASSES)
    assert json.loads(facts['preparation']) == dict(
        steps=[
            dict(
                type='Resize',
                width=32,
                height=32,
                backend='cv2',
                interpolation='bilinear',
            )
        ],
        channel_order='BGR',
        mean=[127.5] * 3,
        std=[127.5] * 3,
        size=[32, 32],
    )
    assert facts['method'] == 'TopK'
    assert json.loads(facts['keep_rate']) == 0.5
    assert facts['mmclca_version'] == mmclca.__version__
    assert "type='mmclca.TopK'" in facts['config']


@torch.no_grad()
def test_onnx_beside_the_checkpoint(export, tmp_path, capsys):
    config, checkpoint, model = write_model(tmp_path)
    export(config, checkpoint)
    path = checkpoint.with_suffix('.onnx')
    session = onnxruntime.InferenceSession(path)
    check_facts(session.get_modelmeta().custom_metadata_map)
    x = noise(4, (32, 32))
    (logits,) = session.run(None, dict(images=x.numpy()))
    torch.testing.assert_close(torch.tensor(logits), model(x))
    assert 'tiny.onnx: ' in capsys.readouterr().out


@torch.no_grad()
@pytest.mark.slow
def test_pt2_elsewhere(export, tmp_path):
    config, checkpoint, model = write_model(tmp_path)
    out = tmp_path / 'new' / 'model.pt2'
    export(config, checkpoint, '--format', 'pt2', '--out', out)
    names = ('classes', 'preparation', 'method', 'keep_rate')
    facts = dict.fromkeys((*names, 'mmclca_version', 'config'), '')
    program = torch.export.load(out, extra_files=facts)
    check_facts(facts)
    x = noise(4, (32, 32))
    torch.testing.assert_close(program.module()(x), model(x))


@pytest.mark.slow
def test_int8_has_a_name_of_its_own(export, tmp_path):
    config, checkpoint, _ = write_model(tmp_path)
    export(config, checkpoint, '--int8', '--opset', 20)
    session = onnxruntime.InferenceSession(tmp_path / 'tiny.int8.onnx')
    check_facts(session.get_modelmeta().custom_metadata_map)


@pytest.mark.parametrize(
    'words, message',
    [
        ('--format pt2 --int8', '--int8 is of --format onnx'),
        ('--opset 17', '--opset: 17: at least 18'),
        ('--out model.pt2', 'must end in .onnx'),
        (
            '--cfg-options test_dataloader.dataset.pipeline.1.keep_ratio=True',
            'Resize(keep_ratio=True)',
        ),
    ],
)
def test_mistakes(words, message, export, tmp_path, capsys):
    config, checkpoint, _ = write_model(tmp_path)
    assert exit_code(export, config, checkpoint, *words.split()) == 2
    assert message in capsys.readouterr().err
    assert not checkpoint.with_suffix('.onnx').exists()
