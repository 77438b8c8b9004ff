# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fill a folder with small versions of all files named in the docs."""

import runpy
import shutil
import sys

import numpy as np
import timm
import torch
from mmengine.config import Config
from PIL import Image
from small_models import PATCH_CONVNET, RESMLP
from tables import read_sweep, unpack
from tiny_model import write_tiny
from tiny_run import CLASSES, ROOT, run_tool
from ultra_fgvc_trees import cotton_leaves, write

from mmclca.datasets.synthetic_leaves import draw_leaf, make_cultivars
from mmclca.registry import MODELS

LEAF40 = ROOT / (
    'configs/clca/clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px.py'
)

GRID = """
datasets = ['leaf40']
backbones = ['vit-mini-p14']
methods = ['EViT']
keep_rates = [0.5]
sizes = [56]
clca = ['base', 'clca']
seeds = [1]
options = {
    'train_cfg.max_epochs': 1,
    'train_dataloader.num_workers': 0,
    'test_dataloader.num_workers': 0,
}
"""
# a config with a narrow model
NARROW = """
_base_ = '{path}'
arch = dict(
    _delete_=True,
    embed_dims=16,
    num_layers=12,
    num_heads=2,
    feedforward_channels=32,
)
model = dict(backbone=dict(arch=arch), head=dict(in_channels=16))
load_from = None
train_cfg = dict(max_epochs=1)
few = dict(num_workers=0, dataset=dict(indices=8))
train_dataloader = val_dataloader = test_dataloader = few
"""
FOLDERS = (
    *('_base_', 'baselines', 'few_shot', 'retrieval'),
    *('cait', 'deit', 'deit3', 'parallel', 'patchconvnet', 'resmlp'),
)
RUN = ('fig_1',)  # grids run by a page, without stored results
LEAVES = ('leaf.png', 'leaf.jpg', 'a.jpg', 'b.jpg', 'IMG_0007.JPG')


def fill(folder, monkeypatch):
    """Write models, data and configs for all pages into ``folder``."""
    write_tiny(folder / '.tiny', reduce_at=(0, 1, 2))  # three stages
    cfg = Config.fromfile(folder / '.tiny/tiny.py')
    cfg.visualizer.vis_backends = [dict(type='LocalVisBackend')]
    cfg.dump(folder / 'tiny.py')
    write_tiny(folder / '.resmlp', **RESMLP)
    shutil.copy(folder / '.resmlp/tiny.pth', folder / 'resmlp.pth')
    each = dict(PATCH_CONVNET, multiclass=len(CLASSES))
    write_tiny(folder / '.pooling', 'mmclca.PerClassHead', **each)
    shutil.copy(folder / '.pooling/tiny.pth', folder / 'pooling.pth')
    _confuse(folder / '.tiny/data')
    _train(folder, monkeypatch)
    _write_leaves(folder)
    _write_sets(folder)
    for name in ('tools', 'mmclca', 'tests', 'demo'):
        (folder / name).symlink_to(ROOT / name)
    _write_configs(folder)
    _write_own_pieces(folder)
    for name in ('docs/pictures/methods', 'docs/benchmarks'):
        (folder / name).mkdir(parents=True)  # output folders of commands


def _confuse(folder):
    """Add two copies of each image, one in a wrong class folder."""
    for here, there in zip(CLASSES, (*CLASSES[1:], CLASSES[0]), strict=True):
        for path in sorted((folder / here).glob('?.png')):
            image = Image.open(path)
            image.rotate(90).save(folder / here / f'{path.stem}_turned.png')
            image.rotate(180).save(folder / there / f'of_{here}{path.name}')


def _train(folder, monkeypatch):
    """Train and test the tiny model: checkpoints, log, predictions."""
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        patch.setenv('LOCAL_RANK', '0')
        run_tool(patch, ROOT / 'tools/train.py', 'tiny.py', '--work-dir=run')
        best = ('tiny.py', 'run/epoch_2.pth', '--out', 'results.pkl')
        run_tool(patch, ROOT / 'tools/test.py', *best)
    (folder / 'work_dirs/RUN').mkdir(parents=True)
    for name in ('best.pth', 'epoch_50.pth'):
        shutil.copy(folder / 'run/epoch_2.pth', folder / name)
    for name in ('other.pth', 'work_dirs/RUN/epoch_50.pth'):
        shutil.copy(folder / 'run/epoch_1.pth', folder / name)
    (log,) = folder.glob('run/*/vis_data/scalars.json')
    shutil.copy(log, folder / 'log.json')
    shutil.copy(folder / 'tiny.py', folder / 'config.py')
    leaf40 = Config.fromfile(LEAF40).model
    torch.save(MODELS.build(leaf40).state_dict(), folder / 'leaf40.pth')
    deit = timm.create_model('deit_tiny_patch16_224')
    torch.save(deit.state_dict(), folder / 'deit_tiny_patch16_224.pth')


def _draw(path, cultivar, seed, size=64):
    path.parent.mkdir(parents=True, exist_ok=True)
    leaf = draw_leaf(cultivar, np.random.default_rng(seed), size)
    Image.fromarray(np.asarray(leaf)).save(path)


def _write_leaves(folder):
    cultivars = make_cultivars(12)
    for c, cultivar in enumerate(cultivars):
        for n in range(5):
            path = folder / f'data/my_leaves/cultivar_{c}/{n}.png'
            _draw(path, cultivar, n)
    _draw(folder / 'data/other_leaves/1.png', cultivars[0], 200)
    names = (*LEAVES, 'scans/1.tif', 'new_leaves/1.png', 'new_leaves/2.png')
    for n, name in enumerate((*names, 'data/new_leaves/1.png')):
        _draw(folder / name, cultivars[0], 100 + n)


def add_demo(folder):
    """Write the output files of ``tools/demo.py``."""
    best = folder / 'work_dirs/demo/best_accuracy_top1_epoch_1.pth'
    best.parent.mkdir(parents=True)
    shutil.copy(folder / 'best.pth', best)
    for n, cultivar in enumerate(make_cultivars(2)):
        name = f'cultivar_{n}/cultivar_{n}_0001.jpg'
        _draw(folder / 'data/synthetic_leaves/images' / name, cultivar, n)


def _write_sets(folder):
    """Write Leaf40 with one image per class, and a tiny Cotton80."""
    root = folder / 'data/leaf40_white'
    classes = [f'species_{c}' for c in range(40)]
    for c, cultivar in enumerate(make_cultivars(40)):
        for n, name in enumerate(('train', 'test')):
            _draw(root / f'{name}_{c}.png', cultivar, 40 * n + c)
    (root / 'classes.txt').write_text('\n'.join(classes))
    for name in ('train', 'test'):
        lines = [f'{name}_{c}.png {c}\n' for c in range(40)]
        (root / f'{name}.txt').write_text(''.join(lines))
    (root / 'train.txt').rename(root / 'train_3shot.txt')
    write('csv', folder / '.cotton', 'cotton80', cotton_leaves())
    (folder / 'data/cotton').symlink_to(folder / '.cotton')  # read only


def _write_configs(folder):
    configs = folder / 'configs'
    (configs / 'sweeps').mkdir(parents=True)
    (configs / 'clca').mkdir()
    for name in FOLDERS:
        (configs / name).symlink_to(ROOT / 'configs' / name)
    for path in ROOT.glob('configs/sweeps/*.py'):
        text = path.read_text() if 'leaf40' in path.name else GRID
        (configs / 'sweeps' / path.name).write_text(text)
    for path in ROOT.glob('configs/clca/*'):
        if '-448px.py' in path.name:
            (configs / 'clca' / path.name).write_text(NARROW.format(path=path))
        else:
            (configs / 'clca' / path.name).symlink_to(path)
    (name,) = (configs / 'clca').glob('clca-evit-kr10_vit-*cotton80*')
    shutil.copy(name, folder / 'cotton.py')


def _write_own_pieces(folder):
    base = ROOT / 'configs/_base_'
    mine = {
        'datasets/orchids': base / 'datasets/leaf40_224.py',
        'models/my-vit': base / 'models/clca-evit_vit-mini-p14.py',
        'schedules/short': base / 'schedules/clca_50e.py',
    }
    for name, ours in mine.items():
        path = folder / f'my_configs/_base_/{name}.py'
        path.parent.mkdir(parents=True)
        path.write_text(f'_base_ = {str(ours)!r}')


def add_results(folder):
    """Write sweep results as tables and JSON files."""
    (folder / 'docs/results').mkdir(parents=True)
    for path in ROOT.glob('docs/results/*.csv'):
        shutil.copy(path, folder / 'docs/results')
    results = read_sweep(ROOT / 'docs/results/leaf40.csv')
    for path in ROOT.glob('configs/sweeps/*.py'):
        if path.stem not in RUN:
            unpack(results, folder / 'work_dirs/sweeps' / path.stem)


def call_tool(words, patch):
    """Run ``python TOOL ...`` in this process; return the error or ''."""
    patch.syspath_prepend('.')
    patch.setattr(sys, 'argv', list(words[1:]))
    try:
        runpy.run_path(words[1], run_name='__main__')
    except SystemExit as end:
        return '' if end.code in (None, 0) else str(end.code)
    except Exception as error:  # reported by the test
        return f'{type(error).__name__}: {error}'
    return ''
