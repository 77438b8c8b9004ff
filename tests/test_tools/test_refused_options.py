# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Wrong settings end a tool in one line, and no file is written."""

import mmengine
import pytest
import torch
from mmpretrain import get_model
from PIL import Image
from tiny_model import write_tiny
from tiny_run import CONFIG, ROOT, end_of, write_images

EXPORT, SPEED = 'deployment/export.py', 'benchmark/throughput.py'
SPLIT = 'dataset_converters/split_folder.py'
HOLD_OUT = 'dataset_converters/hold_out_classes.py'
MATRIX = 'analysis_tools/confusion_matrix.py'
BEST = 'analysis_tools/analyze_results.py'
FLOPS = 'analysis_tools/get_flops.py'
BROWSE = 'visualization/browse_dataset.py'
PUBLISH = 'model_converters/publish_model.py'
OPTION = '--cfg-options'
KEPT_RATIO = 'test_dataloader.dataset.pipeline.1.keep_ratio=True'
# tool, words, and the object or option named in the error
REFUSED = [
    (EXPORT, 'tiny.py tiny.pth --format pt2 --int8', '--int8'),
    (EXPORT, 'tiny.py tiny.pth --opset 17', '--opset'),
    (EXPORT, 'tiny.py tiny.pth --out model.pt2', '--out model.pt2'),
    (EXPORT, f'tiny.py tiny.pth {OPTION} {KEPT_RATIO}', 'keep_ratio'),
    (SPEED, '--img-size 100', '--img-size'),
    (SPEED, '--batch 0', '--batch'),
    (SPEED, '--keep-rates 0.5 2', '--keep-rates'),
    (SPEED, '--methods Topk', 'TopK'),
    (SPEED, '--arch b16', '--arch'),
    (SPEED, '--compile fast', '--compile'),
    (SPEED, '--device nowhere', '--device'),
    (SPEED, '--out /proc/x/y', '--out'),
    (SPEED, '--configs none.py', 'none.py'),
    (SPEED, '--configs tiny.py tiny.py', 'TopK 0.5'),
    (SPEED, '--train --batch 1', '--batch 1'),
    (SPEED, '--train --fuse', '--fuse'),
    (SPEED, '--compile --memory', '--memory'),
    (SPEED, '--backend onnx --amp bf16 --train', '--amp and --train'),
    (SPEED, '--baseline none.py --arch base', '--arch'),
    (SPEED, '--configs empty.py', 'model.backbone'),
    (SPEED, '--configs no_backbone.py', 'model.backbone'),
    (SPEED, '--configs open.py', 'open.py'),
    (SPEED, '--configs taught.py --train', 'model.teacher'),
    (SPEED, '--configs unknown.py', 'mmclca.No'),
    ('train.py', 'tiny.py --auto-scale-lr', 'auto_scale_lr'),
    ('train.py', f'tiny.py {OPTION} load_frm=a.pth', 'load_from'),
    ('test.py', f'tiny.py a.pth --show {OPTION} default_hooks=None', 'hook'),
    ('test.py', 'tiny.py a.pth --out-item metrics', '--out FILE'),
    ('test.py', 'tiny.py backbone.pth', 'backbone.pth'),
    ('test.py', 'tiny.py a.pth b.pth --out out.pkl', '--out-item metrics'),
    ('test.py', 'tiny.py tiny.pth --benchmark real', 'CustomDataset'),
    (SPLIT, 'gone', 'gone'),
    (SPLIT, 'empty', 'empty'),
    (SPLIT, 'one_class', 'two classes'),
    (SPLIT, 'split', 'train, val'),
    (SPLIT, 'data --val-fraction 0', 'val fraction'),
    (SPLIT, 'data --val-fraction 1', 'val fraction'),
    ('sweep.py', 'grid.py --jobs 0', '--jobs'),
    ('sweep.py', 'grid.py --threads -1', '--threads'),
    ('sweep.py', 'gone.py', 'gone.py'),
    ('sweep.py', 'grid.py', 'Evit'),
    ('open_set.py', 'tiny.pth --known gone', 'gone'),
    ('open_set.py', 'tiny.pth --unknown new --test new', '--config'),
    ('open_set.py', 'tiny.pth --known data --score nearest', 'nearest'),
    ('open_set.py', 'tiny.pth --known data --accept 1.5', 'accept'),
    ('open_set.py', 'tiny.pth --known data --test new', '--unknown'),
    ('open_set.py', 'tiny.pth --known data --out t.txt', '.json'),
    ('predict.py', 'best.pth leaf.png --out x.txt', '.csv or .json'),
    ('predict.py', 'best.pth leaf.png --topk 0', '--topk'),
    ('predict.py', 'best.pth leaf.png --tokens', '--tokens'),
    ('predict.py', 'best_1.pth best_9.pth new', 'best_9.pth'),
    ('predict.py', 'tiny.py best.pth new', 'best.pth new --config tiny.py'),
    ('predict.py', 'new best.pth', 'predict.py best.pth new'),
    ('predict.py', 'tiny.pth empty', 'empty'),
    ('retrieval.py', 'tiny.pth --gallery empty', 'empty'),
    ('retrieval.py', 'tiny.pth --gallery gone', 'gone'),
    ('retrieval.py', 'tiny.pth --index gone', 'gone'),
    ('retrieval.py', 'tiny.pth --sheet s.doc', 's.doc'),
    ('retrieval.py', 'tiny.pth --topk 0', '--topk'),
    ('retrieval.py', 'tiny.pth --sheet-queries 0', '--sheet-queries'),
    ('retrieval.py', 'tiny.pth --out r.txt', '.csv or .json'),
    ('retrieval.py', 'tiny.pth --save-index g.pth', '.safetensors'),
    ('retrieval.py', 'tiny.pth --index a --gallery b', '--index'),
    ('retrieval.py', 'tiny.pth --ranking conditional', '--coarse'),
    ('probe.py', 'tiny.pth --keep-rate 0.5', '--method'),
    ('probe.py', 'tiny.pth --groups a', '--images'),
    ('probe.py', 'tiny.pth --images gone', 'gone'),
    ('probe.py', 'tiny.pth --images data --test new/oak', 'labels'),
    ('probe.py', 'tiny.pth --images data --test data', '16 test images'),
    ('probe.py', 'tiny.pth --weights tiny.pth', 'checkpoints'),
    ('probe.py', 'tiny.pth --classifier knn', 'knn'),
    ('probe.py', 'tiny.pth --images data --layers 7', 'layers='),
    (MATRIX, 'tiny.py gone.pkl', 'gone.pkl'),
    (MATRIX, 'tiny.py tiny.py', '--out results.pkl'),
    (MATRIX, 'tiny.py bad.pkl --show-path gone/a.png', 'folder gone'),
    (MATRIX, 'tiny.py bad.pkl --out a.txt', '.pkl or .json'),
    (BEST, 'tiny.py few.pkl --out-dir out', '1 predictions'),
    (BEST, 'tiny.py bad.pkl --out-dir out', 'pred_score'),
    (BEST, 'tiny.py gone.pkl --out-dir out', 'gone.pkl'),
    (BEST, 'gone.py few.pkl --out-dir out', 'gone.py'),
    (BEST, 'tiny.py few.pkl --topk 0 --out-dir out', '--topk'),
    (FLOPS, 'gone.py', 'gone.py'),
    (FLOPS, 'empty.py', 'model'),
    (FLOPS, 'tiny.py --shape 0', '--shape'),
    (FLOPS, 'tiny.py --shape 1 2 3', '--shape'),
    (FLOPS, 'tiny.py --shape 33', '40'),
    (FLOPS, f'tiny.py {OPTION} model.backbone.arch=deit-tini', 'deit-tini'),
    (BROWSE, f'tiny.py -o a -p val {OPTION} val_dataloader=None', 'val_data'),
    (BROWSE, 'tiny.py --not-show', '--output-dir'),
    (BROWSE, 'tiny.py -n 0', '--show-number'),
    (BROWSE, 'tiny.py -r 0', '--rescale-factor'),
    (PUBLISH, 'tiny.pth gone/leaf', 'gone'),
    (PUBLISH, 'tiny.pth leaf --config gone.py', 'gone.py'),
    (PUBLISH, 'cut.pth leaf', 'incomplete'),
    (PUBLISH, 'tiny.pth leaf --dataset-type Leaves', '--dataset-type'),
    (HOLD_OUT, 'data --num 3 --out lists', 'classes.txt'),
]
CONFIGS = dict(
    empty='x = 1',
    no_backbone="model = dict(type='ImageClassifier')",
    open='model = dict(',
    taught=f"{CONFIG}\nmodel['teacher'] = dict(config='x')",
    unknown=CONFIG.replace('mmclca.TopK', 'mmclca.No'),
    grid="datasets = ['leaf40']\nbackbones = ['vit-mini-p14']\n"
    "methods = ['Evit']\nkeep_rates = [0.5]\nsizes = [56]\n"
    "clca = ['base']\nseeds = [1]\n",
)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Folder with a tiny model, images, and damaged or incomplete files."""
    folder = tmp_path_factory.mktemp('refused')
    write_tiny(folder)
    write_images(folder / 'new', per_class=1, seed=1)
    for name, text in CONFIGS.items():
        (folder / f'{name}.py').write_text(text)
    for name in ('empty', 'one_class/a', 'split/train/a', 'split/val/a'):
        (folder / name).mkdir(parents=True)
        if name != 'empty':
            Image.new('RGB', (8, 8)).save(folder / name / '0.png')
    backbone = get_model(str(folder / 'tiny.py')).backbone
    torch.save(backbone.state_dict(), folder / 'backbone.pth')
    cut = (folder / 'tiny.pth').read_bytes()[:1000]
    (folder / 'cut.pth').write_bytes(cut)
    row = dict(sample_idx=0, gt_label=torch.tensor([0]))
    row.update(pred_label=torch.tensor([0]), pred_score=torch.ones(4))
    mmengine.dump([row], folder / 'few.pkl')
    mmengine.dump([{}], folder / 'bad.pkl')
    return folder


def files_in(folder):
    """Return all paths, without the logs of a runner."""
    return {x for x in folder.rglob('*') if 'work_dirs' not in x.parts}


@pytest.mark.parametrize('tool, words, term', REFUSED)
def test_tool_exits_with_one_line_if_setting_is_wrong(
    tool, words, term, folder, monkeypatch, capsys
):
    monkeypatch.chdir(folder)
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)
    before = files_in(folder)
    path = ROOT / 'tools' / tool
    assert end_of(monkeypatch, path, *words.split()) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith(path.name) and term in line
    assert files_in(folder) == before
