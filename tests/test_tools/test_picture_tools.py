# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures of a trained model: options with and without effect."""

import re

import mmcv
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmpretrain import get_model
from small_models import PATCH_CONVNET
from tiny_model import write_tiny
from tiny_run import CLASSES, ROOT, exit_code, run_tool, write_run

from mmclca.visualization import draw_heat_maps

IMAGE = 'data/elm/0.png'
RANDOM = 'tiny.py --leaves 1'
PART = f'{RANDOM} --pretrained part.pth'
CAM = f'0.pth {IMAGE}'
POOL = f'each/tiny.pth {IMAGE} --classes'
FEW = '--num-images 8 --batch-size 8'
TSNE = '--perplexity 3 --n-iter 250 --work-dir new'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Folder with configs, checkpoints, images, attention pooling models."""
    folder = tmp_path_factory.mktemp('pictures')
    cfg = Config.fromfile(write_run(folder))
    meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=CLASSES))
    for seed in (0, 1):
        torch.manual_seed(seed)
        model = get_model(cfg, pretrained=False)
        for param in model.parameters():
            torch.nn.init.normal_(param, std=0.3)
        stored = dict(state_dict=model.state_dict(), meta=meta)
        torch.save(stored, folder / f'{seed}.pth')
    meta['dataset_meta'] = dict(classes=CLASSES[::-1])
    torch.save(stored, folder / 'renamed.pth')
    torch.save(model.backbone.state_dict(), folder / 'part.pth')
    (folder / 'text.png').write_text('no image')
    each = dict(PATCH_CONVNET, multiclass=4)
    write_tiny(folder / 'each', 'mmclca.PerClassHead', **each)
    write_tiny(folder / 'one', **PATCH_CONVNET)
    return folder


@pytest.fixture
def tool(folder, monkeypatch):
    """Run a tool in the folder."""
    monkeypatch.chdir(folder)

    def tool(name, words):
        path = ROOT / f'tools/visualization/{name}.py'
        run_tool(monkeypatch, path, *words.split(), '--device', 'cpu')

    return tool


@pytest.fixture
def draw(tool, folder):
    """Run a tool and return its picture."""

    def draw(name, words):
        if name == 'vis_tsne':
            tool(name, f'{words} {TSNE}')
            return mmcv.imread(folder / 'new/tsne_pre_logits.png')
        tool(name, f'{words} --out out.png')
        return mmcv.imread(folder / 'out.png')

    return draw


@pytest.mark.parametrize(
    'name, words, same, other',
    [
        ('vis_rollout', CAM, f'{IMAGE} 0.pth tiny.py', f'1.pth {IMAGE}'),
        ('vis_cam', CAM, f'{CAM} --target-layers backbone.layers[-1].ln1',
         f'{CAM} --target-layers 0 1 2'),
        ('vis_cam', CAM, f'{CAM} --target-layer -1',
         f'{CAM} --method LayerCAM --aug-smooth'),
        ('vis_cam', CAM, f'{CAM} --method GradCAM',
         f'{CAM} --target-category 1 2 3'),
        ('vis_pooling', f'{POOL} oak elm ash', f'{POOL} 3 2 0',
         f'{POOL} oak'),
        ('draw_reduction', RANDOM, f'{RANDOM} --seed 0', PART),
    ],
)  # fmt: skip
def test_picture_depends_on_model_and_options_only(
    draw, name, words, same, other
):
    picture = draw(name, words)
    assert picture.std() > 10
    assert np.array_equal(picture, draw(name, same))
    assert not np.array_equal(picture, draw(name, other))


def test_cam_title_counts_kept_patches(tool, monkeypatch):
    seen = []
    monkeypatch.setattr(
        'mmclca.visualization.draw_heat_maps',
        lambda rows, *more: seen.extend(rows) or draw_heat_maps(rows, *more),
    )

    def titles(*layers):
        tool('vis_cam', f'{CAM} --target-category 1 --save-path out.png '
             f'--target-layers {" ".join(map(str, layers))}')  # fmt: skip
        (title,) = seen.pop().maps
        return title.splitlines()[2:]

    assert titles(0) == titles(1) == []
    (left,) = titles(-1)
    assert left in ('8 of 16 patches kept', '9 of 16 patches kept')
    assert titles(0, 2) == [left]  # 9, or 8 if a CLR token is kept


@pytest.mark.parametrize('words', [RANDOM, PART])
def test_warning_is_printed_if_weights_are_random(draw, capsys, words):
    draw('draw_reduction', words)
    assert ('weights are random' in capsys.readouterr().err) == (words != PART)


@pytest.mark.slow
def test_tsne_depends_on_weights_and_classes(draw):
    config = 'tiny.py --checkpoint 0.pth'
    picture = draw('vis_tsne', config)
    assert picture.std() > 5
    assert np.array_equal(picture, draw('vis_tsne', config))
    for words in ('1.pth', '0.pth --legend --class-idx 1 3'):
        other = draw('vis_tsne', f'tiny.py --checkpoint {words}')
        assert not np.array_equal(picture, other)


@pytest.mark.parametrize(
    'name, words, message',
    [
        ('vis_rollout', '0.pth', '--leaves 1'),
        ('vis_rollout', '0.pth --leaves -1', '--leaves: -1'),
        ('vis_rollout', '0.pth gone.png text.png', 'gone.*text'),
        ('vis_rollout', 'tiny.py a.png', '0 checkpoints .* 1 configs'),
        ('vis_rollout', '0.pth 1.pth a.png', '2 checkpoints'),
        ('vis_rollout', f'gone.py 0.pth {IMAGE}', 'gone.py'),
        ('vis_rollout', f'{CAM} --out gone/a.png', 'folder gone'),
        ('vis_cka', f'0.pth {IMAGE}', 'elm/0.png'),
        ('vis_cka', 'tiny.py 0.pth --batch-size 17', '16 images'),
        ('vis_cka', '0.pth --kind pca --other 1.pth', 'omit --other'),
        ('vis_cka', f'tiny.py 0.pth --kind probe {FEW} --feature all',
         'cls or mean'),
        ('vis_cka', 'tiny.py 0.pth --cfg-options model.head=None',
         'not a classifier'),
        ('vis_confusions', 'gone.pth', 'gone.pth'),
        ('vis_agreement', 'tiny.py 0.pth --other tiny.py renamed.pth',
         'class names'),
        ('vis_cam', f'{CAM} --target-category 4 1 9', '4 9: .* 0 to 3'),
        ('vis_cam', f'{CAM} --target-layers 3', 'layer=3'),
        ('vis_cam', f'{CAM} --target-layers head', 'backbone.l'),
        ('vis_cam', f'{CAM} --method cam', "choice: 'cam' .*hirescam"),
        ('vis_cross_patch', '0.pth', 'TokenReductionViT .*linear'),
        ('vis_tsne', 'tiny.py --checkpoint 0.pth --class-idx 4',
         '-idx 4: .* 0 to 3'),
        ('vis_pooling', f'{POOL} oka', r"no 'oka' \(do you mean oak"),
        ('vis_pooling', f'{POOL} 4', "no '4'.* labels from 0 to 3"),
        ('vis_pooling', f'one/tiny.pth {IMAGE} --classes oak', 'one query'),
        ('draw_reduction', 'tiny.py', '--leaves 1'),
        ('draw_reduction', f'{RANDOM} --out out.txt', 'out.txt'),
        ('draw_reduction', 'tiny.py gone.pth --leaves 1', 'gone.pth'),
        ('draw_reduction', 'gone.py --leaves 1', 'gone.py'),
        ('draw_reduction', 'tiny.py part.pth --leaves 1', 'parameters of'),
        ('draw_reduction', f'0.pth {PART}', '--pretrained'),
        ('draw_reduction', f'{RANDOM} --cfg-options model.backbone.reducer='
         'None model.backbone.cache=None model.backbone.reduce_at=()',
         'reduces no tokens'),
    ],
)  # fmt: skip
def test_picture_command_exits_with_one_line_if_argument_is_wrong(
    tool, capsys, name, words, message
):
    out = '' if '--out' in words or name == 'vis_tsne' else '--out out.png'
    assert exit_code(tool, name, f'{out} {words}') == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert re.search(rf'^{name}.py: error: .*{message}', line)


@pytest.mark.parametrize(
    'kind', ['maps', 'attention', 'fourier', 'probe', 'reinit', 'pca']
)
def test_layer_study_draws_and_writes_numbers(draw, folder, kind):
    words = f'--kind {kind} --feature mean --num-images 16 --batch-size 8'
    assert draw('vis_cka', f'tiny.py 0.pth {words}').std() > 10
    rows = (folder / 'out.csv').read_text().splitlines()
    assert len(rows) >= 3 and all(len(row.split(',')) > 2 for row in rows)


def test_layer_study_accepts_weights_without_head(draw, folder):
    stored = torch.load(folder / '0.pth', weights_only=False)
    names = [n for n in stored['state_dict'] if n.startswith('backbone.')]
    kept = {name: stored['state_dict'][name] for name in names}
    torch.save(dict(state_dict=kept), folder / 'pretrained.pth')
    words = f'--kind maps --other tiny.py 0.pth {FEW}'
    assert draw('vis_cka', f'tiny.py pretrained.pth {words}').std() > 10


@pytest.mark.parametrize('head', ['mmclca.DistilledHead', 'LinearClsHead'])
def test_layer_study_accepts_other_heads_and_backbones(draw, folder, head):
    cfg = Config.fromfile(folder / 'tiny.py')
    backbone = dict(cfg.model.backbone, reducer=None, cache=None, reduce_at=())
    backbone['dist_token'] = head != 'LinearClsHead'
    cfg.model.backbone = backbone
    if (
        head == 'LinearClsHead'
    ):  # mmpretrain's ViT with a norm after average pooling
        plain = {k: backbone[k] for k in ('arch', 'img_size', 'patch_size')}
        plain.update(out_type='avg_featmap', final_norm=False)
        cfg.model.type = 'ImageClassifier'
        cfg.model.backbone = dict(type='VisionTransformer', **plain)
    cfg.model.head = dict(type=head, num_classes=4, in_channels=24)
    cfg.dump(folder / 'other.py')
    own = get_model(cfg, pretrained=False).state_dict()
    kept = {n: x for n, x in own.items() if not n.startswith('backbone.ln2.')}
    torch.save(dict(state_dict=kept), folder / 'other.pth')
    assert draw('vis_cka', f'other.py other.pth {FEW}').std() > 10
