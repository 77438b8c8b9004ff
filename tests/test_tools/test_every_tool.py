# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Every tool without its own test file runs once, and every subcommand.

Golden files store printed lines and column titles for some tools.
"""

import shutil
import signal
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from golden import golden, without_folder
from installed import HAS_GRADIO, NEEDS_COMPILER, NEEDS_GRADIO
from mmengine.config import Config
from reading import only_reading
from small_models import RESMLP
from tiny_model import write_tiny
from tiny_photos import write_photos, write_weights
from tiny_run import ROOT, exit_code, load_tool, train_with_hooks, write_images

from mmclca.checkpoints.gate.stored_config import read_stored_config
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.cli.listing import SUBCOMMANDS
from mmclca.cli.main import main


class Row(NamedTuple):
    """Arguments of a call, a file it writes, calls to run before."""

    words: str
    file: str = ''
    needs: tuple[str, ...] = ()


FIT = (
    'photographs --weights weights/tiny.safetensors --probe-only '
    '--runtime pytorch'
)
FITTED = ('mmclca fit',)
TABLE = {
    'predict.py': Row(
        'tiny.pth new --device cpu --out predict.csv', 'predict.csv'
    ),
    'probe.py': Row(
        'tiny.pth --images data --test new --device cpu --out probe.pth',
        'probe.pth',
    ),
    'retrieval.py': Row(
        'tiny.pth --gallery data --queries new --topk 2 --device cpu '
        '--out retrieval.csv',
        'retrieval.csv',
    ),
    'open_set.py': Row(
        'tiny.pth --known data --test new --unknown unknown --device cpu',
        'tiny.threshold.json',
    ),
    'analysis_tools/get_flops.py': Row(
        'clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px'
    ),
    'analysis_tools/analyze_logs.py': Row(
        'plot_curve log.json --keys loss --out curves.png', 'curves.png'
    ),
    'research/vis_agreement.py': Row(
        'tiny.py tiny.pth --other tiny.py tiny.pth --device cpu --out '
        'agree.png',
        'agree.png',
    ),
    'research/latency_prediction.py': Row(
        '--weights weights/tiny.safetensors --rounds 2 --most 2'
    ),
    'visualization/vis_confusions.py': Row(
        'tiny.py tiny.pth --device cpu --pairs 1 --out taken.png', 'taken.png'
    ),
    'visualization/vis_cross_patch.py': Row(
        'resmlp/tiny.pth --device cpu --out mixed.png', 'mixed.png'
    ),
    'visualization/vis_tsne.py': Row(
        'tiny.py --checkpoint tiny.pth --device cpu --vis-stage pre_logits '
        '--perplexity 3 --n-iter 250 --work-dir plane',
        'plane/tsne_pre_logits.png',
    ),
    'mmclca fit': Row(f'{FIT} --out fitted', 'fitted/fit.json'),
    'mmclca predict': Row('model new --out named.csv', 'named.csv', FITTED),
    'mmclca report': Row('model', 'model/report.html', FITTED),
    # a model without reduction, which takes longer to export
    'mmclca export': Row('plain', 'plain/model.onnx', ('plain',)),
    'mmclca page': Row('model', needs=FITTED),
    'mmclca verify': Row('model', needs=FITTED),
    'mmclca add-class': Row(
        'model unknown --name larch', 'model/report.html', FITTED
    ),
    'mmclca remove-class': Row(
        'model elm --yes', 'model/previous/report.html', FITTED
    ),
    'mmclca rename-class': Row(
        'model elm wych', 'model/previous/report.html', FITTED
    ),
    'mmclca undo': Row(
        'model', 'model/previous/report.html', ('mmclca rename-class',)
    ),
}
# calls with a model folder in place of a checkpoint
WITH_FOLDER = {
    'analysis_tools/get_flops.py': Row('model'),
    'probe.py': Row(
        'model --images photographs --device cpu --out own.pth', 'own.pth'
    ),
    'open_set.py': Row(
        'model --known photographs --device cpu --score energy',
        'model/threshold.json',
    ),
    'test.py': Row('fitted.py model --out tested.pkl', 'tested.pkl'),
    'deployment/export.py': Row(
        'model --format pt2 --out model.pt2', 'model.pt2'
    ),
    'train.py': Row(
        'fitted.py --no-validate --work-dir tuned --cfg-options '
        'load_from=model',
        'tuned/epoch_1.pth',
    ),
    'analysis_tools/confusion_matrix.py': Row(
        'fitted.py model --show-path m.png', 'm.png'
    ),
    'model_converters/publish_model.py': Row('model fit', 'fit_*.pth'),
    'research/vis_cka.py': Row(
        'fitted.py model --device cpu --num-images 8 --batch-size 8 --out '
        'fit_cka.png',
        'fit_cka.png',
    ),
}
# tools tested in files with other names than theirs
ELSEWHERE = {
    'test_engine/test_reconstruction_hook.py': (
        'visualization/vis_reconstruction.py'
    ),
    'test_package/test_licenses.py': 'dev/write_licenses.py',
    'test_package/test_metadata.py': 'dev/smoke_test.py dev/write_recipe.py',
    'test_package/test_package_limits.py': (
        'dev/count_habits.py dev/count_lines.py'
    ),
    'test_package/test_web_runtime.py': 'dev/fetch_web_runtime.py',
    'test_research/test_agreement_study.py': 'research/agreement.py',
    'test_research/test_alternatives.py': 'research/alternatives_foreign.py',
    'test_research/test_pages.py': 'research/plot_sweep.py',
    'test_research/test_tables.py': 'research/benchmarks.py',
    'test_tools/test_export.py': 'deployment/infer_onnx.py',
    'test_tools/test_generated_pages.py': (
        'dev/write_metafile.py dev/write_command_reference.py '
        'dev/write_model_zoo.py'
    ),
    'test_tools/test_mmpretrain_tools.py': (
        'misc/print_config.py visualization/vis_scheduler.py'
    ),
    'test_tools/test_picture_tools.py': (
        'visualization/draw_reduction.py visualization/vis_cam.py '
        'research/vis_cka.py visualization/vis_pooling.py '
        'visualization/vis_rollout.py'
    ),
    'test_tools/test_pictures_of_docs.py': 'dev/pictures/__main__.py',
    'test_tools/test_split_folder.py': (
        'dataset_converters/hold_out_classes.py'
    ),
    'test_tools/test_train_and_test.py': 'train.py test.py',
}
# run by make lint, or by hand
UNTESTED = {'dev/check_prose.py', 'dev/mutate.py'}
# commands that change nothing in their inputs
READERS = (
    *('predict.py', 'probe.py', 'retrieval.py', 'test.py'),
    *('deployment/export.py', 'mmclca predict', 'mmclca page'),
    'mmclca verify',
)
SLOW = (pytest.mark.slow, pytest.mark.first)
EXPORTS = (*SLOW, NEEDS_COMPILER)
MARKS = {
    'mmclca export': EXPORTS,
    'mmclca page': NEEDS_GRADIO,
    'research/latency_prediction.py': EXPORTS,
}
GOLDEN = (
    'predict.py',
    'probe.py',
    'open_set.py',
    'retrieval.py',
    'analysis_tools/get_flops.py',
)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Folder with the models, images and logs named in the calls."""
    folder = tmp_path_factory.mktemp('every')
    torch.manual_seed(0)
    write_tiny(folder)
    write_tiny(folder / 'resmlp', **RESMLP)
    train_with_hooks(folder / 'run')
    (log,) = folder.glob('run/work/*/vis_data/scalars.json')
    shutil.copy(log, folder / 'log.json')
    write_images(folder / 'new', per_class=1, seed=1)
    write_images(folder / 'others', per_class=1, seed=2)
    (folder / 'others/oak').rename(folder / 'unknown')
    write_photos(folder)
    (folder / 'weights').mkdir()
    write_weights(folder / 'weights')
    return folder


@pytest.fixture(scope='module')
def answer(folder):
    """Return exit code and output of a call, run once."""
    answers = {}

    def answer(name):
        if name == 'plain':
            row = Row(f'{FIT} --best --out plain')
            return call('mmclca fit', row, folder)
        if name not in answers:
            for need in TABLE[name].needs:
                answer(need)
            answers[name] = call(name, TABLE[name], folder)
        return answers[name]

    return answer


def call(name, row, folder):
    """Run a tool or subcommand in this process, in a folder."""
    program, *words = [*name.split(), *row.words.split()]
    for path in folder.glob(row.file or '-'):
        path.unlink()
    if row.needs == FITTED:
        shutil.copytree(
            folder / 'fitted', folder / 'model', dirs_exist_ok=True
        )
    if name not in READERS:
        return run_words(program, words, folder)
    # the config of test.py names the photos
    more = ['photographs'] * (program == 'test.py')
    with only_reading(folder, [*words, *more]):
        return run_words(program, words, folder)


def run_words(program, words, folder):
    """Run a command line; return its exit code and output."""
    out = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
        patch.chdir(folder)
        patch.setenv('LOCAL_RANK', '0')
        patch.setenv('COLUMNS', '80')
        patch.setattr(torch, 'set_num_threads', lambda _: None)
        patch.setattr(signal, 'signal', lambda *_: None)
        if HAS_GRADIO:
            patch.setattr('gradio.Blocks.block_thread', lambda page: None)
        patch.setattr(sys, 'argv', [Path(program).name, *words])
        run = main
        if program != 'mmclca':
            run = load_tool(patch, ROOT / 'tools' / program, *words)['main']
        return exit_code(run), out.getvalue()


@pytest.mark.parametrize(
    'name', [pytest.param(name, marks=MARKS.get(name, ())) for name in TABLE]
)
def test_command_succeeds_and_writes_its_file(name, answer, folder):
    check(TABLE[name], *answer(name), folder)


def check(row, code, printed, folder):
    assert not code, printed
    assert [*folder.glob(row.file)] if row.file else printed


@pytest.fixture(scope='module')
def fitted(answer, folder):
    """Write ``fitted.py``, a config of the model folder with datasets."""
    assert not answer('mmclca fit')[0]
    cfg = read_stored_config(open_checkpoint(str(folder / 'fitted')))
    tiny = Config.fromfile(folder / 'tiny.py')
    dataset = dict(cfg.test_dataloader.dataset, data_root='photographs')
    for name in ('train_dataloader', 'test_dataloader'):
        cfg[name] = dict(tiny[name], dataset=dataset)
    for name in ('test_cfg', 'test_evaluator', 'optim_wrapper', 'train_cfg'):
        cfg[name] = tiny[name]
    cfg.train_cfg.max_epochs = 1
    cfg.dump(folder / 'fitted.py')


@pytest.mark.parametrize(
    'name',
    [
        pytest.param(name, marks=EXPORTS if 'export' in name else ())
        for name in WITH_FOLDER
    ],
)
def test_command_accepts_model_folder(name, fitted, folder):
    row = WITH_FOLDER[name]._replace(needs=FITTED)
    check(row, *call(name, row, folder), folder)


@pytest.mark.parametrize('name', GOLDEN)
def test_output_and_columns_equal_golden_file(name, answer, folder):
    _, printed = answer(name)
    if TABLE[name].file.endswith('.csv'):
        columns, *_ = (folder / TABLE[name].file).read_text().splitlines()
        printed += f'\ncolumns: {columns}\n'
    said = without_folder(printed, folder)
    assert said == golden(f'output/{Path(name).stem}.txt', said)


def test_table_lists_every_tool():
    files = (ROOT / 'tools').rglob('*.py')
    tools = [path for path in files if '__main__' in path.read_text()]
    there = {path.relative_to(ROOT / 'tools').as_posix() for path in tools}
    stubs = {path.stem.replace('_', '-') for path in tools}
    there |= {f'mmclca {x}' for x in SUBCOMMANDS if x not in stubs}
    # also run as subcommands
    there |= {'mmclca export', 'mmclca predict'}
    tests = ROOT / 'tests'
    elsewhere = ' '.join(ELSEWHERE.values()).split()
    names = {x: Path(x.split()[-1].replace('-', '_')).stem for x in there}
    own = {x for x in there if [*tests.rglob(f'test_{names[x]}.py')]}
    assert {*TABLE, *own, *elsewhere, *UNTESTED} == there
    assert all((tests / name).exists() for name in ELSEWHERE)
