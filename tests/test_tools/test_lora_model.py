# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tools open a LoRA model as its merged, plain model."""

import json
from pathlib import Path

import mmcv
import pytest
import torch
from installed import NEEDS_COMPILER
from mmengine.config import Config
from mmpretrain import get_model
from tiny_run import CLASSES, write_run

from mmclca.apis import TokenReductionInferencer
from mmclca.deployment.program import noise

LORA = dict(
    type='mmclca.LoRAModel', rank=2, alpha=4, targets=[dict(type='.*qkv')]
)


@pytest.fixture
def lora(tmp_path, monkeypatch):
    """LoRA model with checkpoint lora.pth in the current folder."""
    monkeypatch.chdir(tmp_path)
    config = Config.fromfile(write_run(tmp_path))
    config.model = dict(LORA, module=config.model.to_dict())
    config.dump('lora.py')
    model = get_model('lora.py')
    for parameter in model.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    meta = dict(cfg=config.pretty_text, dataset_meta=dict(classes=CLASSES))
    torch.save(dict(meta=meta, state_dict=model.state_dict()), 'lora.pth')
    return model.eval()


@torch.no_grad()
def test_lora_model_is_merged_when_opened(lora):
    x = noise(4, (32, 32))
    for given in (('lora.py', 'lora.pth'), (lora,), ('lora.pth',)):
        found = TokenReductionInferencer(*given, device='cpu').model
        assert torch.allclose(found(x), lora(x), atol=1e-5)
        assert not any('lora_' in name for name in found.state_dict())
        assert found._config.model.type == 'ImageClassifier'
        assert all(p.requires_grad for p in found.parameters())
    assert any('lora_' in name for name in lora.state_dict())


@pytest.mark.parametrize('target', ['(a+)+b', 3])
def test_stored_lora_is_refused_if_its_targets_are_slow(lora, target):
    config = Config.fromfile('lora.py')
    config.model.targets = [dict(type=target)]
    stored = torch.load('lora.pth', weights_only=True)
    stored['meta']['cfg'] = config.pretty_text
    torch.save(stored, 'lora.pth')
    with pytest.raises(ValueError, match='targets'):
        TokenReductionInferencer('lora.pth')


@pytest.mark.slow
@NEEDS_COMPILER
def test_tools_accept_lora_model(lora, run):
    config = 'lora.py', 'lora.pth'
    image = 'data/elm/0.png'
    run('predict.py', 'lora.pth', image, '--config', 'lora.py',
        '--out', 'out.json', '--topk', '4')  # fmt: skip
    (result,) = json.loads(Path('out.json').read_text())
    pixels = torch.tensor(mmcv.imread(image)).permute(2, 0, 1).float()
    with torch.no_grad():
        wanted = lora(pixels[None] / 127.5 - 1).softmax(1)[0].tolist()
    for one in result['classes']:
        assert one['score'] == pytest.approx(wanted[one['label']], abs=1e-5)
    # export compares the logits with PyTorch
    run('deployment/export.py', *config)
    run('research/vis_agreement.py', *config, '--out', 'out.png')


def test_lora_model_costs_equal_plain_model(lora, run):
    lora_cost, cost = (
        json.loads(run('analysis_tools/get_flops.py', name, '--json').out)
        for name in ('lora.py', 'tiny.py')
    )
    assert lora_cost == cost and cost['parts']['FFN']
