# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures of a trained model: options with and without effect."""

import mmcv
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmpretrain import get_model
from small_models import PATCH_CONVNET
from tiny_model import write_tiny
from tiny_run import CLASSES, ROOT, run_tool, write_run

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
    torch.save(model.backbone.state_dict(), folder / 'part.pth')
    each = dict(PATCH_CONVNET, multiclass=4)
    write_tiny(folder / 'each', 'mmclca.PerClassHead', **each)
    return folder


@pytest.fixture
def tool(folder, monkeypatch):
    """Run a tool in the folder."""
    monkeypatch.chdir(folder)

    def tool(name, words):
        (path,) = (ROOT / 'tools').rglob(f'{name}.py')
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
        ('vis_cam', CAM,
         f'{CAM} --target-layers backbone.layers[-1].ln1 --method GradCAM',
         f'{CAM} --target-layer 0 -1 --target-category 1 2'),
        ('vis_cam', CAM, f'{CAM} --target-layer -1',
         f'{CAM} --method LayerCAM --aug-smooth'),
        ('vis_pooling', f'{POOL} oak elm ash', f'{POOL} 3 2 0',
         f'{POOL} oak'),
        ('draw_reduction', RANDOM, f'{RANDOM} --seed 0', PART),
    ],
)  # fmt: skip
def test_picture_depends_on_model_and_options_only(
    draw, capsys, name, words, same, other
):
    picture = draw(name, words)
    warned = 'weights are random' in capsys.readouterr().err
    assert warned == (words == RANDOM)
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
    'kind', ['maps', 'attention', 'fourier', 'probe', 'reinit', 'pca']
)
def test_layer_study_draws_and_writes_numbers(draw, folder, kind):
    words = f'--kind {kind} --feature mean --num-images 16 --batch-size 8'
    assert draw('vis_cka', f'tiny.py 0.pth {words}').std() > 10
    rows = (folder / 'out.csv').read_text().splitlines()
    assert len(rows) >= 3 and all(len(row.split(',')) > 2 for row in rows)


def test_layer_study_accepts_weights_without_head(draw):
    words = f'--kind maps --other tiny.py 0.pth {FEW}'
    assert draw('vis_cka', f'tiny.py part.pth {words}').std() > 10


def test_layer_study_accepts_other_heads_and_backbones(draw, folder):
    cfg = Config.fromfile(folder / 'tiny.py')
    backbone = cfg.model.backbone
    # mmpretrain's ViT with a norm after average pooling
    plain = {k: backbone[k] for k in ('arch', 'img_size', 'patch_size')}
    plain.update(out_type='avg_featmap', final_norm=False)
    cfg.model.backbone = dict(type='VisionTransformer', **plain)
    cfg.dump(folder / 'other.py')
    own = get_model(cfg, pretrained=False).state_dict()
    kept = {n: x for n, x in own.items() if not n.startswith('backbone.ln2.')}
    torch.save(dict(state_dict=kept), folder / 'other.pth')
    assert draw('vis_cka', f'other.py other.pth {FEW}').std() > 10
