# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""User errors end a command in one line, before weights are downloaded."""

import re
import shutil
import sys

import mmengine
import pytest
import torch
from fuzzing import bounded
from hostile import few_and_many
from installed import HAS_GRADIO, NEEDS_GRADIO
from mmengine.config import Config
from mmengine.runner import CheckpointLoader
from mmpretrain import get_model
from PIL import Image
from quick_runs import make_quick
from small_models import PATCH_CONVNET
from tiny_model import write_tiny
from tiny_photos import write_photos, write_weights
from tiny_run import CLASSES, CONFIG, ROOT, exit_code, load_tool, write_images

from mmclca.checkpoints.error import DownloadError
from mmclca.cli.main import main
from mmclca.errors import Error
from mmclca.fitting import weights
from mmclca.utils.messages import did_you_mean

OPTIONS = '--cfg-options'
TRAIN = f'train tiny.py {OPTIONS}'
TEST = f'test tiny.py fetched://weights {OPTIONS}'
EXPORT = 'export tiny.py tiny.pth'
SPEED, SPLIT = 'throughput', 'split-folder'
FIT = 'fit photographs --weights weights/tiny.safetensors --probe-only'
DATASET = 'train_dataloader.dataset'
AFRESH = 'load_from=None'
DAMAGED_ROOT = 'dataset.data_root=damaged'
DAMAGED = f'train_dataloader.{DAMAGED_ROOT}'
TEST_TINY = f'test tiny.py tiny.pth {OPTIONS}'
REDUCER = 'model.backbone.reducer'
IMAGE = 'data/elm/0.png'
CAM = f'vis-cam tiny.pth {IMAGE} --out a.png'
DRAW = 'draw-reduction --leaves 1 --out a.png tiny.py'
CKA = 'tools/research/vis_cka.py --out a.png tiny.py tiny.pth'
POOL = f'vis-pooling each/tiny.pth {IMAGE} --out a.png --classes'
PLAIN = f'{REDUCER}=None model.backbone.cache=None model.backbone.reduce_at=()'
# a command, and the object or option named in its error
ERRORS = [
    (f'{TRAIN} {REDUCER}.type=mmclca.TopKK', 'mmclca.TopK '),
    (f'{TRAIN} {REDUCER}.keeprate=0.5', 'keeprate'),
    (f'{TRAIN} train_cfg.max_epoch=1', 'max_epoch'),
    (f'{TRAIN} train_dataloader.batchsize=1', 'batchsize'),
    (f'{TRAIN} model.head.num_classes=5', 'head.num_classes=4'),
    (f'{TRAIN} model.backbone.img_size=30', 'img_size=30'),
    (f'{TRAIN} {DATASET}.data_root=gone', 'gone'),
    (f'{TRAIN} {DATASET}.type=CustomDatase', 'CustomDataset'),
    (f'{TRAIN} modl.head.num_classes=4', 'modl'),
    (f'{TRAIN} model.head.num_classes = 4', 'KEY=VALUE'),
    (f'{TRAIN} load_from=gone.pth', 'gone.pth'),
    (f'{TRAIN} load_frm=a.pth', 'load_from'),
    (f'{TRAIN} train_cfg.max_epochs=0', 'max_epochs=0'),
    (f'{TRAIN} model.backbone.patch_size=0', 'patch_size=0'),
    (f'{TRAIN} val_evaluator.topk=99', 'val_evaluator'),
    (f'{TRAIN} {AFRESH} model.head.in_channels=25', 'in_channels'),
    (f'{TRAIN} {AFRESH} {DAMAGED}', 'damaged/ash/0.png: no image'),
    (
        f'{TRAIN} {AFRESH} {DAMAGED} train_dataloader.num_workers=1',
        ': damaged/ash/0.png: no image',
    ),
    (f'{TRAIN} {AFRESH} {DATASET}.ann_file=../empty.txt', 'empty.png: no'),
    (f'{TRAIN} {AFRESH} {DATASET}.ann_file=../gone.txt', 'ash/gone.png'),
    (f'{TEST_TINY} test_dataloader.{DAMAGED_ROOT}', 'damaged/ash/0.png'),
    ('train tiny2.py', 'tiny2.py'),
    ('train tiny.py --auto-scale-lr', 'auto_scale_lr'),
    (f'{TEST} {REDUCER}.type=mmclca.TopKK', 'mmclca.TopK '),
    (f'{TEST} model.head.num_classes=5', 'head.num_classes=4'),
    (f'{TEST} test_dataloader=3', 'test_dataloader'),
    ('test tiny.py gone.pth', 'gone.pth'),
    ('test tiny.py gone.pth --out tiny.py/a.pkl', 'a.pkl'),
    (f'test tiny.py a.pth --show {OPTIONS} default_hooks=None', 'hook'),
    ('test tiny.py a.pth --out-item metrics', '--out FILE'),
    ('test tiny.py backbone.pth', 'backbone.pth'),
    ('test tiny.py a.pth b.pth --out out.pkl', '--out-item metrics'),
    ('test tiny.py tiny.pth --benchmark real', 'CustomDataset'),
    (f'{EXPORT} {OPTIONS} {REDUCER}.keeprate=0.5', 'keeprate'),
    (
        f'{EXPORT} {OPTIONS} '
        'test_dataloader.dataset.pipeline.1.keep_ratio=True',
        'keep_ratio',
    ),
    (f'{EXPORT} --format pt2 --int8', '--int8'),
    (f'{EXPORT} --web --input batch', '--input needs'),
    (f'{EXPORT} --float', '--web'),
    (f'{EXPORT} --web --out tiny.py', 'tiny.py is a file'),
    (f'{EXPORT} --opset 17', '--opset'),
    (f'{EXPORT} --opset 23', '--opset'),
    (f'{EXPORT} --out model.pt2', '--out model.pt2'),
    ('export tiny.py gone.pth', 'gone.pth'),
    ('export model', 'mmclca fit'),
    (f'get-flops tiny.py {OPTIONS} {REDUCER}.keeprate=0.5', 'keeprate'),
    (f'get-flops tiny.py {OPTIONS} model.backbone.arch=tin', 'tin'),
    ('get-flops empty.py', 'model'),
    ('get-flops tiny.py --shape 1 2 3', '--shape'),
    ('get-flops tiny.py --shape 33', '40'),
    (f'{SPEED}', 'configs'),
    (f'{SPEED} tiny.py --batch 0', '--batch'),
    (f'{SPEED} tiny.py --keep-rates 0.5 2', '--keep-rates'),
    (f'{SPEED} tiny.py --methods Topk', 'TopK'),
    (f'{SPEED} tiny.py --out /proc/x/y.csv', '--out'),
    (f'{SPEED} none.py', 'none.py'),
    (f'{SPEED} tiny.py tiny.py', 'same name'),
    (f'{SPEED} tiny.py --out speed.xlsx', '.json'),
    (f'{SPEED} tiny.py --runtimes onnx --amp bf16', '--amp'),
    (f'{SPEED} tiny.py --runtimes onnx-int8 --compile', '--compile'),
    (f'{SPEED} empty.py', 'model.backbone'),
    (f'{SPEED} open.py', 'open.py'),
    (f'{SPEED} unknown.py --methods EViT', 'mmclca.No'),
    (f'{SPLIT} gone', 'gone'),
    (f'{SPLIT} one', 'two classes'),
    (f'{SPLIT} split', 'train, val'),
    (f'{SPLIT} data --val-fraction 1', 'val fraction'),
    ('hold-out-classes data --num 3 --out lists', 'classes.txt'),
    ('ultra-fgvc check nothing --dataset cotton80', 'Cotton80'),
    ('sweep gone.py', 'gone.py'),
    ('sweep grid.py', 'Evit'),
    ('open-set tiny.pth --known gone', 'gone'),
    ('open-set tiny.pth --unknown new --test new', '--config'),
    ('open-set tiny.pth --known data --score nearest', 'nearest'),
    ('open-set tiny.pth --known data --accept 1.5', 'accept'),
    ('open-set tiny.pth --known data --test new', '--unknown'),
    ('open-set http://a/b.pth --known data', '--out FILE'),
    ('predict gone.pth data', 'gone.pth'),
    ('predict a.pth leaf.png --out x.txt', '.xlsx'),
    ('predict a.pth leaf.png --tokens', '--tokens'),
    ('predict a.pth b.pth new', 'b.pth'),
    ('predict a.pth new --sure 95', '--sure needs a model folder'),
    ('predict tiny.py a.pth new', 'a.pth new --config tiny.py'),
    ('predict new a.pth', 'predict a.pth new'),
    ('predict tiny.pth nothing', 'nothing'),
    ('predict model photos', 'mmclca fit'),
    ('predict tiny.pth data --show-dir data', 'contains images'),
    ('predict bare.pth data', 'bare.pth has no config'),
    (f'predict tiny.pth data --show-dir p {OPTIONS} {PLAIN}', 'reduce_at'),
    *(
        (f'predict model a.png --device {name}', name)
        for name in ('gpu', 'meta', 'mps', 'cpu:x')
    ),
    ('retrieval tiny.pth --gallery gone', 'gone'),
    ('retrieval tiny.pth --index gone', 'gone'),
    ('retrieval tiny.pth --sheet s.doc', 's.doc'),
    ('retrieval tiny.pth --index a --gallery b', '--index'),
    ('retrieval tiny.pth --index a --save-index b.safetensors', '--index'),
    ('retrieval tiny.pth --ranking conditional', '--coarse'),
    ('probe tiny.pth --keep-rate 0.5', '--method'),
    ('probe tiny.pth --groups a', '--images'),
    ('probe tiny.pth --groups a --images a.txt', '--images'),
    ('probe tiny.pth --images gone', 'gone'),
    ('probe tiny.pth --images data --test new/oak', 'labels'),
    ('probe tiny.pth --images data --test data', '16 test images'),
    ('probe tiny.pth --weights tiny.pth', 'checkpoints'),
    ('probe tiny.pth --classifier knn', 'knn'),
    ('probe tiny.pth --images data --layers 7', 'layers='),
    ('confusion-matrix tiny.py gone.pkl', 'gone.pkl'),
    ('confusion-matrix tiny.py tiny.py', '--out'),
    ('confusion-matrix tiny.py bad.pkl --show-path x/a.png', 'folder x'),
    ('analyze-results tiny.py few.pkl --out-dir out', '1 predictions'),
    ('analyze-results tiny.py bad.pkl --out-dir out', 'pred_score'),
    (
        f'browse-dataset tiny.py -o a -p val {OPTIONS} val_dataloader=None',
        'val_data',
    ),
    ('browse-dataset tiny.py --not-show', '--output-dir'),
    ('browse-dataset tiny.py -r 0', '--rescale-factor'),
    ('publish-model tiny.pth gone/leaf', 'gone'),
    ('publish-model tiny.pth leaf --config gone.py', 'gone.py'),
    ('publish-model cut.pth leaf', 'incomplete'),
    ('publish-model tiny.pth leaf --dataset-type Leaves', '--dataset-type'),
    ('fit gone', 'gone'),
    ('fit one', 'two classes'),
    ('fit weights/tiny.safetensors', 'is a file'),
    ('fit photographs', '--weights'),
    ('fit photographs --weights x.pth', 'x.pth'),
    (f'{FIT} --budget cheap', 'cheap'),
    (f'{FIT} --budget -1GMACs', 'above 0'),
    (f'{FIT} --best --budget 20ms', '--best'),
    (f'{FIT} --labels table.csv', '9.png'),
    (f'{FIT} --out taken', '--overwrite'),
    (f'{FIT} --groups (', 'groups'),
    (f'{FIT} --groups oak', 'groups'),
    ('report model', 'mmclca fit'),
    pytest.param('page model', 'mmclca fit', marks=NEEDS_GRADIO),
    ('page model --port 65536', '65535'),
    ('page model --port 0', '--port'),
    ('page model --auth ann', 'USER:PASSWORD'),
    ('page model --host 999.1.1.1', '999.1.1.1'),
    ('page model --host 192.0.2.1', '192.0.2.1'),
    ('add-class model one', 'mmclca fit'),
    ('add-class one a.pth', 'add-class a.pth one'),
    ('fitt', 'fitt'),
    ('vis-rollout tiny.pth --out a.png', '--leaves 1'),
    ('vis-rollout tiny.pth gone.png text.png --out a.png', 'text.png'),
    ('vis-rollout tiny.py a.png --out a.png', '0 checkpoints'),
    ('vis-rollout tiny.pth b.pth a.png --out a.png', '2 checkpoints'),
    (f'vis-rollout tiny.pth {IMAGE} --out gone/a.png', 'folder gone'),
    (f'{CKA} {IMAGE}', 'elm/0.png'),
    (f'{CKA} --batch-size 17', '16 images'),
    (f'{CKA} --kind pca --other tiny.py tiny.pth', 'omit --other'),
    (
        f'{CKA} --kind probe --num-images 8 --batch-size 8 --feature all',
        'cls or mean',
    ),
    (f'{CKA} {OPTIONS} model.head=None', 'not a classifier'),
    (
        'tools/research/vis_agreement.py tiny.py tiny.pth --other tiny.py '
        'renamed.pth --out a.png',
        'class names',
    ),
    (f'{CAM} --target-category 4 1 9', '4 9: expected labels from 0 to 3'),
    (f'{CAM} --target-layers 3', 'layer=3'),
    (f'{CAM} --target-layers head', 'backbone.l'),
    ('vis-cross-patch tiny.pth --out a.png', 'linear'),
    ('vis-tsne tiny.py --checkpoint tiny.pth --class-idx 4', 'from 0 to 3'),
    (f'{POOL} oka', 'do you mean oak'),
    (f'{POOL} 4', 'labels from 0 to 3'),
    (f'vis-pooling one.pth {IMAGE} --out a.png --classes oak', 'one query'),
    (f'{DRAW} gone.pth', 'gone.pth'),
    (f'{DRAW} backbone.pth', 'parameters of'),
    (f'{DRAW} tiny.pth --pretrained backbone.pth', '--pretrained'),
    (f'{DRAW} {OPTIONS} {PLAIN}', 'reduces no tokens'),
]
TEXTS = {
    'empty.py': 'x = 1',
    'open.py': 'model = dict(',
    'unknown.py': CONFIG.replace('mmclca.TopK', 'mmclca.No'),
    'grid.py': "datasets = ['leaf40']\nbackbones = ['vit-mini-p14']\n"
    "methods = ['Evit']\nkeep_rates = [0.5]\nsizes = [56]\n"
    "clca = ['base']\nseeds = [1]\n",
    'table.csv': 'file,class\nash/0.png,ash\nash/9.png,elm\n',
    'text.png': 'no image',
    'taken/thesis.tex': '',
    'empty.txt': '../damaged/empty.png 0\n',
    'gone.txt': 'ash/gone.png 0\n',
}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Folder with models, photos, and damaged or incomplete files."""
    folder = tmp_path_factory.mktemp('errors')
    for name in ('nothing', 'taken', 'weights', 'one/a', 'split/train/a'):
        (folder / name).mkdir(parents=True)
    (folder / 'split/val/a').mkdir(parents=True)
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    for name in ('one/a', 'split/train/a', 'split/val/a'):
        Image.new('RGB', (8, 8)).save(folder / name / '0.png')
    write_models(folder)
    write_images(folder / 'new', per_class=1, seed=1)
    write_images(folder / 'damaged', per_class=1, seed=1)
    (folder / 'damaged/ash/0.png').write_text('no image')
    (folder / 'damaged/empty.png').touch()
    write_photos(folder, per_class=2)
    write_weights(folder / 'weights')
    row = dict(sample_idx=0, gt_label=torch.tensor([0]))
    row.update(pred_label=torch.tensor([0]), pred_score=torch.ones(4))
    mmengine.dump([row], folder / 'few.pkl')
    mmengine.dump([{}], folder / 'bad.pkl')
    return folder


def write_models(folder):
    """Write the tiny model, whose config names weights to download."""
    each = dict(PATCH_CONVNET, multiclass=4)
    write_tiny(folder / 'each', 'mmclca.PerClassHead', **each)
    write_tiny(folder / 'single', **PATCH_CONVNET)
    (folder / 'single/tiny.pth').rename(folder / 'one.pth')
    write_tiny(folder)
    cfg = Config.fromfile(folder / 'tiny.py')
    backbone = get_model(cfg).backbone
    cfg.load_from = 'fetched://weights'
    cfg.dump(folder / 'tiny.py')
    torch.save(backbone.state_dict(), folder / 'backbone.pth')
    stored = torch.load(folder / 'tiny.pth', weights_only=True)
    torch.save(stored['state_dict'], folder / 'bare.pth')
    stored['meta']['dataset_meta'] = dict(classes=CLASSES[::-1])
    torch.save(stored, folder / 'renamed.pth')
    cut = (folder / 'tiny.pth').read_bytes()[:1000]
    (folder / 'cut.pth').write_bytes(cut)


@pytest.fixture
def fetched(monkeypatch):
    """List of requested addresses."""
    asked = []

    def fetch(filename, map_location=None, logger=None):
        asked.append(filename)
        raise RuntimeError(f'{filename} was fetched')

    schemes = {**CheckpointLoader._schemes, 'fetched://': fetch}
    schemes = dict(sorted(schemes.items(), reverse=True))
    monkeypatch.setattr(CheckpointLoader, '_schemes', schemes)
    return asked


@pytest.fixture
def end(folder, monkeypatch, fetched):
    """Run a command in the folder; return its exit code."""
    make_quick(monkeypatch)
    monkeypatch.chdir(folder)
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)
    monkeypatch.setattr('mmengine.runner.runner.collect_env', dict)

    def end(*words):
        name, *others = words
        monkeypatch.setattr(sys, 'argv', ['mmclca', *words])
        program = main
        if '/' in name:  # a tool without a command
            program = load_tool(monkeypatch, ROOT / name, *others)['main']
        return exit_code(program)

    return end


def files_in(folder):
    """Return all paths, without the logs of a runner."""
    return {x for x in folder.rglob('*') if 'work_dirs' not in x.parts}


@pytest.mark.parametrize('words, term', ERRORS)
def test_command_exits_with_one_line_if_argument_is_wrong(
    words, term, end, folder, fetched, capfd, monkeypatch
):
    def missing(source):
        raise DownloadError(source)

    if '--weights' not in words:
        monkeypatch.setattr(weights, 'open_checkpoint', missing)
    before = files_in(folder)
    assert end(*words.split()) == 2
    *_, line = capfd.readouterr().err.splitlines()
    assert re.match(r'(mmclca|vis_)\w*.*: error: ', line) and term in line
    assert files_in(folder) == before and not fetched


def test_weights_are_downloaded_if_settings_are_valid(end, fetched):
    assert end('train', 'tiny.py') == 2  # an error of the download
    assert fetched == ['fetched://weights']


def test_debug_keeps_traceback_if_setting_is_wrong(end):
    with pytest.raises(Error, match='unexpected keyword argument') as error:
        end(*TRAIN.split(), f'{REDUCER}.keeprate=0.5', '--debug')
    cause = error.value
    while cause.__cause__:
        cause = cause.__cause__
    assert isinstance(cause, TypeError)
    with pytest.raises(FileNotFoundError):
        end('predict', 'gone.pth', 'data', '--debug')


def test_internal_error_keeps_traceback(end, monkeypatch, capfd):
    def wrong(self, inputs, data_samples):
        raise ValueError('a bug')

    monkeypatch.setattr('mmpretrain.models.ImageClassifier.loss', wrong)
    assert end(*TRAIN.split(), 'load_from=None') == 1
    said = capfd.readouterr().err
    assert 'Traceback' in said and 'ValueError: a bug' in said


def test_did_you_mean_suggests_close_names_only():
    assert did_you_mean('owl', ['keep_rate', 'num_stages']) == ''
    assert 'keep_rate' in did_you_mean('rate', ['keep_rate'])


# valid command lines of all commands and tools
LINES = (ROOT / 'tests/data/command_lines.txt').read_text().splitlines()
LINES = [line.split() for line in LINES]
SHARED = [word for line in LINES for word in line[1:]]
VALUES = (
    *('', ' ', '-1', '0', '0.5', '1e999', 'nan', '9' * 30, '[', '[]', '{}'),
    *('\u202eé', '\udcff', '-', '--', '=', 'a=1', "a=dict(b='c')", '~0'),
    *('*', 'gone.png', 'tiny.py', 'tiny.pth', 'data', 'nothing', 'x' * 5000),
)
# where a command with a correct command line starts to work
STARTS = (
    *('mmengine.runner.Runner.train', 'mmengine.runner.Runner.test'),
    'mmclca.benchmark.interleaved_seconds',
    'mmclca.checkpoints.downloading.download_checkpoint',
    'mmclca.checkpoints.downloading.download_from_timm',
    'mmclca.cli.commands.demo.make_empty',
    'mmclca.datasets.synthetic_leaves.data_set._take_over',
    'mmclca.datasets.ultra_fgvc.importing.download',
    *('mmclca.deployment.export_onnx', 'mmclca.deployment.export_pt2'),
    'mmclca.fitting.pipeline.choose_plan',
    *['mmclca.page.server.serve'] * HAS_GRADIO,
    'mmclca.sweep.jobs.make_executor',
)


def mutated(words, random):
    """Drop, repeat, move, misspell or replace a word."""
    i, j = random.randrange(len(words)), random.randrange(len(words))
    word, at = words[i], random.randrange(len(words[i]) + 1)
    wrong = word[:at] + random.choice('-x0 =é') + word[at + 1 :]
    rest = words[:i] + words[i + 1 :]
    news = wrong, random.choice(VALUES), random.choice(SHARED)
    replaced = [[*words[:i], new, *words[i + 1 :]] for new in news]
    moved = [*rest[:j], word, *rest[j:]]
    return random.choice([rest, [*words, word], moved, *replaced]) or [wrong]


@few_and_many(10, 1000)
def test_mutated_command_line_starts_or_ends_in_one_line(
    tries, attack, end, folder, tmp_path, capfd, monkeypatch
):
    def start(*_, **__):
        raise KeyboardInterrupt

    for name in STARTS:
        monkeypatch.setattr(name, start)
    monkeypatch.chdir(shutil.copytree(folder, tmp_path / 'copy'))

    def attempt(random):
        name, *words = random.choice(LINES)
        for _ in range(random.choice((1, 1, 2))):
            words = mutated(words, random)
        try:
            with bounded():
                code = end(name, *words)
        except (Exception, KeyboardInterrupt) as error:
            code = repr(error)
        lines = re.findall(
            r'(?m)^(?!usage: |Warning    | ).+', capfd.readouterr().err
        )
        # 1: unreadable photos, 130: started
        assert code in (0, 1, 2, 130), (code, name, words)
        assert code != 2 or len(lines) == 1, (name, words, lines)

    attack.run('mutated command lines', tries, attempt)
