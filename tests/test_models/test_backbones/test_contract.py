# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Every registered backbone, and two toy backbones, work with every tool."""

import json

import pytest
import torch
from installed import NEEDS_COMPILER
from mmengine.config import Config
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.selfsup import BEiTPretrainViT, MAEViT
from mmpretrain.structures import DataSample
from small_backbones import BACKBONES, model_of
from small_models import REDUCERS, build, gradients, images
from tiny_run import ROOT, exit_code, load_tool, run_tool, write_run

from mmclca.apis import TokenReductionInferencer
from mmclca.evaluation.cost import count_config
from mmclca.models import Reducible
from mmclca.page import open_model
from mmclca.page.prediction import predict_photo, show_kept_patches
from mmclca.registry import MODELS
from mmclca.visualization import rollout

TOOLS = ROOT / 'tools'
# tokens entering each layer: prefix, 16 patches and CLR; then prefix, kept,
# fused; then two restored; empty for other backbones
TOKENS = dict.fromkeys(BACKBONES, []) | dict(
    reducible=[19, 12, 14],
    vit=[18, 11, 13],
    hmlp=[6, 5, 7],
    timm_vit=[6, 5, 7],
    distilled=[21, 13, 15],
    cait=[16, 8, 9],
    # the last block processes selected tokens
    transfg=[26, 26, 3],
    ffvt=[17, 17, 7],
    sim_trans=[17, 17, 17],
)
BASELINES = ('transfg', 'ffvt', 'sim_trans')  # accept no reducer


QUICK = ('reducible', 'plain')


@pytest.mark.parametrize('kind', BACKBONES)
def test_backbone_trains_every_parameter_and_has_cost(kind):
    config, model = model_of(kind), build(model_of(kind))
    samples = [DataSample().set_gt_label(i) for i in range(4)]
    model(images(4), samples, mode='loss')['loss'].backward()
    for name, grad in gradients(model).items():
        assert grad.any() and grad.isfinite().all(), name
    cost = count_config(config, (32, 32))
    assert cost.flops > 3 * 24 * 32 * 32
    assert cost.tokens == TOKENS[kind]


@pytest.fixture(
    scope='module',
    params=[
        pytest.param(kind, marks=[pytest.mark.slow] * (kind not in QUICK))
        for kind in BACKBONES
    ],
)
def run(request, tmp_path_factory):
    """Kind, folder, config and checkpoint of a trained backbone."""
    folder = tmp_path_factory.mktemp(request.param)
    config = write_run(folder)
    cfg = Config.fromfile(config)
    cfg.model = model_of(request.param)
    cfg.custom_imports = dict(imports='toy_backbones')
    cfg.dump(config)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv('LOCAL_RANK', '0')
        run_tool(patch, TOOLS / 'train.py', config)
    (checkpoint,) = folder.glob('work_dirs/tiny/epoch_2.pth')
    return request.param, folder, config, str(checkpoint)


def test_predict_writes_classes_and_tokens(run, monkeypatch):
    kind, folder, config, checkpoint = run
    out = folder / 'out.json'
    words = [checkpoint, folder / 'data', '--config', config, '--out', out]
    words += ['--tokens'] * bool(TOKENS[kind])
    run_tool(monkeypatch, TOOLS / 'predict.py', *words)
    results = json.loads(out.read_text())
    assert len(results) == 16 and all(r['classes'] for r in results)
    assert all('tokens' in r for r in results) == bool(TOKENS[kind])


@NEEDS_COMPILER
@pytest.mark.slow  # test_tools/test_export.py exports a ViT
@pytest.mark.parametrize('kind', ['onnx', 'pt2'])
def test_export_writes_verified_model(run, kind, monkeypatch, capsys):
    _, folder, config, checkpoint = run
    out = folder / f'model.{kind}'
    tool = TOOLS / 'deployment/export.py'
    words = config, checkpoint, '--out', out, '--format', kind
    run_tool(monkeypatch, tool, *words)
    assert out.exists() and 'Checked' in capsys.readouterr().out


def test_vis_cam_draws_if_backbone_is_reducible(run, monkeypatch):
    kind, folder, config, checkpoint = run
    out = folder / 'cam.png'
    words = config, checkpoint, folder / 'data/oak/0.png', '--save-path', out
    tool = load_tool(monkeypatch, TOOLS / 'visualization/vis_cam.py', *words)
    drawn = bool(TOKENS[kind])
    code = exit_code(tool['main'])
    assert (code, out.exists()) == ((0, True) if drawn else (2, False))


def test_page_names_photos_and_offers_variants_if_reducible(run):
    kind, folder, config, checkpoint = run
    model = open_model(
        checkpoint, TokenReductionInferencer(config, checkpoint)
    )
    packed = model.inferencer.prepare(str(folder / 'data/oak/0.png'))
    assert len(predict_photo(model.inferencer, packed)['pred_scores']) == 4
    assert model.can_reduce == bool(TOKENS[kind] and kind not in BASELINES)
    if not model.can_reduce:
        return
    variants = model.variants
    assert ('EViT' in variants.methods) == (kind != 'cait')
    method = 'ToMe' if 'ToMe' in variants.methods else 'TopK'
    reduced = variants.at(variants.select(method, 0.3))
    assert len(show_kept_patches(reduced, packed).stages) == 1


def test_rollout_is_refused_if_layers_lack_cls():
    model = MODELS.build(model_of('cait')).eval()
    with pytest.raises(ValueError, match='rollout'):
        rollout(model, images())


@pytest.mark.parametrize('name', REDUCERS)
def test_reducer_keeps_prefix_of_two_tokens_first_and_unmixed(name):
    reducer = dict(type=f'mmclca.{name}', keep_rate=0.5)
    config = dict(BACKBONES['reducible'], reducer=reducer, reduce_at=(0, 1))
    backbone = MODELS.build(dict(config, cache=None)).eval()
    with torch.no_grad():
        _, tokens = backbone.forward_tokens(images())
    rows = torch.eye(18).expand(2, -1, -1)
    for record in tokens.trace:
        rows = record.apply(rows)
    prefix = torch.eye(18)[:2].expand(2, -1, -1)
    assert torch.equal(rows[:, :2], prefix)
    assert not rows[:, 2:, :2].any()
    assert not tokens.patch_weights[:, :2].any()


def test_backbones_include_every_registered_one():
    encoders = MAEViT, BEiTPretrainViT  # only for pre-training
    registered = {
        f'mmclca.{name}'
        for name, kind in MODELS.module_dict.items()
        if issubclass(kind, BaseBackbone) and not issubclass(kind, encoders)
    }
    assert registered == {config['type'] for config in BACKBONES.values()}


def test_reducible_backbones_do_not_override_the_loop():
    for kind in MODELS.module_dict.values():
        if issubclass(kind, Reducible):
            for part in ('forward', 'forward_tokens', 'run_layer', 'reduces'):
                assert getattr(kind, part) is getattr(Reducible, part), kind
