# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Every backbone goes through every tool, and two of the tests' own."""

import json

import pytest
import torch
from mmengine.config import Config
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.selfsup import BEiTPretrainViT, MAEViT
from small_models import REDUCERS, arch, images, vit
from tiny_run import ROOT, exit_code, load_tool, run_tool, write_run

from mmclca.apis import TokenReductionInferencer
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.models import Reducible
from mmclca.page import Variants
from mmclca.page.variants import answer
from mmclca.registry import MODELS
from mmclca.visualization import rollout
from mmclca.visualization.cka import gram_matrices

TOOLS = ROOT / 'tools'
REDUCTION = dict(
    reducer=dict(type='mmclca.EViT', keep_rate=0.5),
    reduce_at=(1,),
    cache=dict(type='mmclca.CrossLayerCache'),
)
BASELINE = dict(arch=arch(3, 24), img_size=32, patch_size=8)
BACKBONES = dict(  # all have 24 channels and take images of 32 pixels
    reducible=dict(REDUCTION, type='mmclca.ToyReducible'),
    vit=dict(vit(3, **REDUCTION), arch=arch(3, 24)),
    hmlp=dict(
        vit(3, patch_size=16, stem=dict(type='mmclca.HMLPStem'), **REDUCTION),
        arch=arch(3, 24),
    ),
    distilled=dict(
        vit(3, dist_token=True, branches=2, **REDUCTION), arch=arch(3, 24)
    ),
    cait=dict(
        type='mmclca.CaiT',
        arch=arch(3, 24),
        img_size=32,
        patch_size=8,
        num_class_layers=1,
        reducer=dict(type='mmclca.ToMe', keep_rate=0.5),
        reduce_at=(1,),
        cache=dict(type='mmclca.CrossLayerCache', num_tokens=0),
    ),
    resmlp=dict(
        type='mmclca.ResMLP',
        arch=dict(embed_dims=24, num_layers=2),
        img_size=32,
        patch_size=8,
    ),
    patchconvnet=dict(
        type='mmclca.PatchConvNet',
        arch=dict(embed_dims=24, num_layers=2),
        img_size=32,
    ),
    transfg=dict(BASELINE, type='mmclca.TransFG', stride=6),
    ffvt=dict(BASELINE, type='mmclca.FFVT', num_tokens=3),
    sim_trans=dict(BASELINE, type='mmclca.SIMTrans'),
    plain=dict(type='mmclca.ToyPlain'),
)
HEADS = dict(distilled='mmclca.DistilledHead', sim_trans='mmclca.SIMTransHead')
TOKENS = dict(  # entering the layers
    # 2 before 16 patches and a CLR token; 2, 9 and a fused one; 2 put back
    reducible=[19, 12, 14],
    vit=[18, 11, 13],
    hmlp=[6, 5, 7],
    distilled=[19, 12, 14],
    cait=[16, 8, 9],
    resmlp=[],
    **dict.fromkeys(['patchconvnet', 'transfg', 'ffvt', 'sim_trans'], []),
    plain=[],
)


@pytest.fixture(scope='module', params=BACKBONES)
def run(request, tmp_path_factory):
    """Kind, folder, config and checkpoint of a backbone that was trained."""
    folder = tmp_path_factory.mktemp(request.param)
    config = write_run(folder)
    cfg = Config.fromfile(config)
    cfg.model.backbone = BACKBONES[request.param]
    own = cfg.model.head.type
    cfg.model.head.type = HEADS.get(request.param, own)
    cfg.custom_imports = dict(imports='toy_backbones')
    cfg.dump(config)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv('LOCAL_RANK', '0')
        run_tool(patch, TOOLS / 'train.py', config)
    (checkpoint,) = folder.glob('work_dirs/tiny/epoch_2.pth')
    return request.param, folder, config, str(checkpoint)


def test_it_learns_all_of_its_parameters(run):
    _, _, config, checkpoint = run
    model = MODELS.build(Config.fromfile(config).model)
    start = {name: p.clone() for name, p in model.named_parameters()}
    state = open_checkpoint(checkpoint)['state_dict']
    assert state.keys() == model.state_dict().keys()
    model.load_state_dict(state)
    for name, param in model.named_parameters():
        assert not torch.equal(param, start[name]), name


def test_costs(run, monkeypatch, capsys):
    kind, _, config, _ = run
    tool = TOOLS / 'analysis_tools/get_flops.py'
    run_tool(monkeypatch, tool, config, '--shape', 32, '--json')
    cost = json.loads(capsys.readouterr().out)
    assert cost['flops'] > 3 * 24 * 32 * 32
    assert cost['tokens'] == TOKENS[kind]


def test_predictions(run, monkeypatch):
    kind, folder, config, checkpoint = run
    out = folder / 'out.json'
    tokens = ['--tokens'] if TOKENS[kind] else []
    run_tool(
        monkeypatch,
        TOOLS / 'predict.py',
        *(checkpoint, folder / 'data', '--config', config),
        *('--out', out, *tokens),
    )
    results = json.loads(out.read_text())
    assert len(results) == 16 and all(r['classes'] for r in results)
    assert all('tokens' in r for r in results) == bool(tokens)


@pytest.mark.slow  # test_tools/test_export.py exports a ViT
@pytest.mark.parametrize('kind', ['onnx', 'pt2'])
def test_export(run, kind, monkeypatch, capsys):
    _, folder, config, checkpoint = run
    out = folder / f'model.{kind}'
    tool = TOOLS / 'deployment/export.py'
    words = config, checkpoint, '--out', out, '--format', kind
    run_tool(monkeypatch, tool, *words)
    assert out.exists() and 'PyTorch within' in capsys.readouterr().out


def test_activation_map(run, monkeypatch, capsys):
    kind, folder, config, checkpoint = run
    out = folder / 'cam.png'
    tool = load_tool(
        monkeypatch,
        TOOLS / 'visualization/vis_cam.py',
        *(config, checkpoint, folder / 'data/oak/0.png'),
        *('--save-path', out),
    )
    code = exit_code(tool['main'])
    drawn = bool(TOKENS[kind])
    assert (code, out.exists()) == ((0, True) if drawn else (2, False))


def test_the_page(run):
    kind, folder, config, checkpoint = run
    inferencer = TokenReductionInferencer(config, checkpoint)
    if not TOKENS[kind]:
        with pytest.raises(ValueError, match='cannot be recorded'):
            Variants(inferencer)
        return
    variants = Variants(inferencer)
    assert ('EViT' in variants.methods) == (kind != 'cait')
    other = variants.at('ToMe', 0.3)
    shown = answer(other, other.prepare(str(folder / 'data/oak/0.png')))
    assert len(shown.survivors.stages) == 1 and shown.gmacs > 0


@pytest.mark.parametrize('run', ['cait'], indirect=True)
def test_where_cls_comes_late_no_layer_has_it(run):
    _, _, config, _ = run
    model = MODELS.build(Config.fromfile(config).model).eval()
    with pytest.raises(ValueError, match="feature='cls': CaiT adds CLS"):
        gram_matrices(model, [])
    with pytest.raises(ValueError, match='needs CLS: CaiT'):
        rollout(model, images())


@pytest.mark.parametrize('name', REDUCERS)
@pytest.mark.parametrize('kind', ['reducible', 'distilled'])
def test_no_reducer_drops_a_token_before_the_patches(name, kind):
    """Two; their rows stay first and are mixed with nothing."""
    reducer = dict(type=f'mmclca.{name}', keep_rate=0.5)
    config = dict(BACKBONES[kind], reducer=reducer, reduce_at=(0, 1))
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


ENCODERS = MAEViT, BEiTPretrainViT


def test_every_registered_backbone_is_among_them():
    """But encoders of pre-training, whose weights others load."""
    registered = {
        f'mmclca.{name}'
        for name, kind in MODELS.module_dict.items()
        if issubclass(kind, BaseBackbone) and not issubclass(kind, ENCODERS)
    }
    assert registered == {config['type'] for config in BACKBONES.values()}


def test_none_overrides_the_loop():
    for kind in filter(is_reducible, MODELS.module_dict.values()):
        for part in ('forward', 'forward_tokens', 'run_layer', 'reduces'):
            assert getattr(kind, part) is getattr(Reducible, part), kind


def is_reducible(kind):
    return issubclass(kind, Reducible)
