# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Models trained with text options can be used like all others."""

import onnxruntime
import pytest
import torch
from installed import NEEDS_COMPILER, needs
from mmengine.config import Config
from tiny_run import ROOT, run_tool, write_run

from mmclca.apis import Probe, TokenReductionInferencer
from mmclca.page import open_model
from mmclca.utils.torch_versions import EXPORTS_LOOPS

TOFU = dict(type='mmclca.ToMe', keep_rate=0.5, early='prune', merge='mlerp')
ATC = dict(type='mmclca.ATC', keep_rate=0.5, linkage='complete')


@pytest.mark.slow
@pytest.mark.parametrize(
    'reducer',
    [
        pytest.param(TOFU, id='tofu', marks=NEEDS_COMPILER),
        pytest.param(ATC, id='atc', marks=needs('torch', EXPORTS_LOOPS)),
    ],
)
def test_trained_model_predicts_opens_in_page_and_exports(
    reducer, tmp_path, monkeypatch
):
    config = Config.fromfile(write_run(tmp_path))
    config.model.backbone.reducer = reducer
    config.dump(tmp_path / 'options.py')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    run_tool(monkeypatch, ROOT / 'tools/train.py', 'options.py')
    checkpoint = tmp_path / 'work_dirs/options/epoch_2.pth'

    run_tool(monkeypatch, ROOT / 'tools/predict.py', checkpoint, 'data')
    inferencer = TokenReductionInferencer(checkpoint, device='cpu')
    read = type(inferencer.model.backbone.reducer)
    assert read.__name__ == reducer['type'].removeprefix('mmclca.')
    for name in reducer.keys() - {'type', 'keep_rate'}:
        assert (
            getattr(inferencer.model.backbone.reducer, name) == (reducer[name])
        )
    (result,) = inferencer('data/ash/0.png')

    page = open_model(checkpoint)
    assert page.inferencer.classes == inferencer.classes
    assert Probe(checkpoint).features(['data/ash/0.png'])[0].shape == (1, 24)

    run_tool(
        monkeypatch,
        ROOT / 'tools/deployment/export.py',
        checkpoint,
        '--input',
        'batch',
        '--out',
        'model.onnx',
    )
    session = onnxruntime.InferenceSession('model.onnx')
    image = inferencer.prepare('data/ash/0.png')['inputs'][None]
    data = inferencer.model.data_preprocessor(dict(inputs=[*image]))
    feeds = {session.get_inputs()[0].name: data['inputs'].numpy()}
    exported, *_ = session.run(None, feeds)
    scores = torch.from_numpy(exported).softmax(dim=-1)[0]
    assert scores.tolist() == pytest.approx(result['pred_scores'], abs=1e-4)
