# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""tools/train.py and tools/test.py: options, and real runs."""

import json
import pickle
import shutil
import warnings
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from mmpretrain import get_model
from tiny_run import ROOT, end_of, load_tool, write_run

from mmclca.checkpoints.gate.folders import locked
from mmclca.errors import Error
from mmclca.models.layers.parallel import ParallelLayer


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Current folder with data and ``tiny.py``."""
    write_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')


@pytest.fixture
def run_tool(monkeypatch):
    """Run a tool."""

    def run_tool(name, *arguments):
        load_tool(monkeypatch, ROOT / f'tools/{name}.py', *arguments)['main']()

    return run_tool


@pytest.fixture
def config_of(run_tool):
    """Return the config passed to ``build_runner``."""
    torch.save(dict(weight=torch.ones(1)), 'a.pth')

    def config_of(name, *arguments):
        with patch('mmclca.engine.runner.build_runner') as build_runner:
            run_tool(name, *arguments)
        return build_runner.call_args.args[0]

    return config_of


def test_train_resumes_and_test_writes_predictions(
    run_tool, trained, tmp_path
):
    work = tmp_path / 'work_dirs' / 'tiny'
    shutil.copytree(trained / 'work_dirs' / 'tiny', work)
    assert (work / 'last_checkpoint').read_text().endswith('epoch_2.pth')
    assert (work / 'config.py').exists()
    # mim searches the checkout, and so work_dirs, for the name of a config
    assert not [*work.rglob('tiny.py')]
    (work / 'last_checkpoint').write_text(str(work / 'epoch_2.pth'))

    longer = ('--cfg-options', 'train_cfg.max_epochs=3')
    (log,) = work.glob('*/*.log')
    run_tool('train', 'tiny.py', '--resume', *longer)
    (resumed,) = set(work.glob('*/*.log')) - {log}
    assert 'Epoch(train) [3]' in resumed.read_text()
    assert 'Epoch(train) [2]' not in resumed.read_text()

    last = work / 'epoch_3.pth'
    predictions, metrics = tmp_path / 'pred.pkl', tmp_path / 'metrics.json'
    run_tool('test', 'tiny.py', last, '--out', predictions)
    run_tool(
        *('test', 'tiny.py', last, '--out', metrics, '--out-item', 'metrics'),
        *('--show-dir', 'pictures', '--interval', 8),
    )
    samples = pickle.loads(predictions.read_bytes())
    hits = [bool(s['pred_label'] == s['gt_label']) for s in samples]
    assert len(hits) == 16
    top1 = json.loads(metrics.read_text())['accuracy/top1']
    assert top1 == pytest.approx(100 * sum(hits) / 16)
    assert len(list((tmp_path / 'pictures').iterdir())) == 2


def scores_of(run_tool, config, weights, *options):
    """Return the scores of the test images in order."""
    order = 'test_dataloader.sampler.shuffle=False'
    arguments = ('--out', 'scores.pkl', '--cfg-options', order, *options)
    run_tool('test', config, weights, *arguments)
    samples = pickle.loads(Path('scores.pkl').read_bytes())
    return torch.stack([sample['pred_score'] for sample in samples])


def test_ema_and_raw_weights_are_tested(run_tool, trained, capfd):
    path = trained / 'work_dirs/tiny/epoch_2.pth'
    saved = torch.load(path, weights_only=False)
    torch.save(saved['state_dict'], 'average.pth')
    torch.save(saved['ema_state_dict'], 'trained.pth')  # swapped, by mmengine
    capfd.readouterr()
    average = scores_of(run_tool, trained / 'tiny.py', path)
    assert capfd.readouterr().out.count('Load checkpoint from') == 1
    hook = 'custom_hooks.0.evaluate_on_'
    options = (f'{hook}ema=False', f'{hook}origin=True')
    trained = scores_of(run_tool, trained / 'tiny.py', path, *options)
    for name, scores in dict(average=average, trained=trained).items():
        alone = scores_of(run_tool, 'tiny.py', f'{name}.pth')
        torch.testing.assert_close(scores, alone)
    assert not torch.allclose(average, trained, atol=1e-3)


@pytest.mark.slow
def test_fused_branches_keep_the_scores(run_tool, tmp_path, monkeypatch):
    config = tmp_path / 'tiny.py'
    text = config.read_text().replace('img_size=32', 'branches=2, img_size=32')
    hook = dict(type='EMAHook', evaluate_on_origin=True)
    config.write_text(text)
    (tmp_path / 'ema.py').write_text(f'{text}custom_hooks = [{hook}]')
    trained, average = (get_model('tiny.py').state_dict() for _ in range(2))
    ema = {f'module.{name}': tensor for name, tensor in trained.items()}
    ema['steps'] = torch.tensor(1)  # swapped, by mmengine
    torch.save(dict(state_dict=average, ema_state_dict=ema), 'both.pth')
    torch.save(trained, 'trained.pth')
    right = [
        scores_of(run_tool, 'tiny.py', weights)
        for weights in ('both.pth', 'trained.pth')
    ]
    last = run_tool, 'ema.py', 'both.pth', '--fuse'
    torch.testing.assert_close(scores_of(*last), right[1])
    monkeypatch.setattr(ParallelLayer, 'ffn', None)  # unused after fusing
    joined = scores_of(run_tool, 'tiny.py', 'both.pth', '--fuse')
    torch.testing.assert_close(joined, right[0])
    assert not torch.allclose(*right, atol=1e-3)


def test_tta_averages_mirrored_views(run_tool):
    torch.save(get_model('tiny.py').state_dict(), 'model.pth')
    plain = scores_of(run_tool, 'tiny.py', 'model.pth')
    both = scores_of(run_tool, 'tiny.py', 'model.pth', '--tta')
    assert both.shape == (16, 4)
    torch.testing.assert_close(both.sum(1), torch.ones(16))
    assert not torch.allclose(both, plain, atol=1e-7)


def test_student_needs_no_teacher_after_training(run_tool, tmp_path):
    (tmp_path / 'student.py').write_text(
        "_base_ = 'tiny.py'\n"
        "model = dict(type='mmclca.TokenReductionClassifier', "
        "teacher=dict(model='gone.py', checkpoint='gone.pth', "
        "loss=dict(type='mmclca.DeiTDistillation')))\n"
    )
    torch.save(get_model('tiny.py').state_dict(), 'student.pth')
    with pytest.raises(Error, match='gone.py'):
        run_tool('train', 'student.py')
    run_tool('test', 'student.py', 'student.pth')
    run_tool('analysis_tools/get_flops', 'student.py', '--shape', '32')
    run_tool('predict', 'student.pth', 'data', '--config', 'student.py')


def test_resume_uses_newest_or_named_checkpoint(config_of):
    fresh = config_of('train', 'tiny.py')
    assert 'resume' not in fresh
    weights = ('--cfg-options', 'load_from=imagenet.pth')
    first = config_of('train', 'tiny.py', '--resume', *weights)
    assert not first.resume  # no checkpoint to resume from
    assert first.load_from == 'imagenet.pth'
    Path('work').mkdir()
    whole = dict(state_dict={}, meta=dict(iter=4))
    torch.save(whole, 'work/epoch_1.pth')
    again = ('--resume', '--work-dir', 'work', *weights)
    latest = config_of('train', 'tiny.py', *again)
    assert (latest.resume, latest.load_from) == (True, 'work/epoch_1.pth')
    torch.save(whole, 'a.pth')
    named = config_of('train', 'tiny.py', '--resume', 'a.pth')
    assert (named.resume, named.load_from) == (True, 'a.pth')


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.cuda.is_available(), reason='a CUDA device is missing'
)
@pytest.mark.parametrize('dtype', ['fp16', 'bf16'])
def test_amp_trains_and_resumes(dtype, run_tool):
    run_tool('train', 'tiny.py', '--amp', dtype)
    longer = ('--cfg-options', 'train_cfg.max_epochs=3')
    run_tool('train', 'tiny.py', '--amp', dtype, '--resume', *longer)
    first, last = (
        torch.load(f'work_dirs/tiny/epoch_{i}.pth', weights_only=False)
        for i in (1, 3)
    )
    for name, value in last['state_dict'].items():
        assert value.isfinite().all()
        assert not torch.equal(value, first['state_dict'][name])


WORKERS = 'train_dataloader.num_workers=2'
PINNED = f'{WORKERS} train_dataloader.pin_memory=True'
SCALED = '--cfg-options auto_scale_lr.base_batch_size=32'
ON_GPU = torch.cuda.is_available()
# arguments, and expected value by config key
SETTINGS = [
    ('train', dict(work_dir='./work_dirs/tiny')),
    ('train --cfg-options work_dir=there', dict(work_dir='there')),
    ('train --work-dir here --cfg-options work_dir=a', dict(work_dir='here')),
    (
        'train --amp --no-validate',
        {
            'optim_wrapper.type': 'AmpOptimWrapper',
            'optim_wrapper.loss_scale': 'dynamic',
            'optim_wrapper.dtype': 'float16',
            'val_dataloader': None,
        },
    ),
    ('train --amp bf16', {'optim_wrapper.type': 'mmclca.BF16OptimWrapper'}),
    ('test a.pth --amp', {'test_cfg.fp16': True}),
    (
        f'train --auto-scale-lr {SCALED}',
        {'auto_scale_lr.enable': True, 'train_dataloader.batch_size': 4},
    ),
    (
        'train',
        {
            'train_dataloader.persistent_workers': False,
            'train_dataloader.pin_memory': ON_GPU,
            'train_dataloader.collate_fn.type': 'default_collate',
        },
    ),
    (
        f'train --cfg-options {WORKERS}',
        {'train_dataloader.persistent_workers': True},
    ),
    (
        'train --no-persistent-workers --no-pin-memory --cfg-options '
        f'{PINNED}',
        {
            'train_dataloader.persistent_workers': False,
            'train_dataloader.pin_memory': False,
        },
    ),
    (
        'test a.pth --show-dir x --interval 3',
        {
            'default_hooks.visualization.enable': True,
            'default_hooks.visualization.out_dir': 'x',
            'default_hooks.visualization.interval': 3,
        },
    ),
]


@pytest.mark.parametrize('words, wanted', SETTINGS)
def test_option_changes_settings(words, wanted, config_of, monkeypatch):
    # half precision needs a GPU
    monkeypatch.setattr('mmclca.engine.runner.get_device', lambda: 'cuda')
    tool, *words = words.split()
    cfg = config_of(tool, 'tiny.py', *words)
    assert {name: get(cfg, name) for name in wanted} == wanted


def get(settings, name):
    for part in name.split('.'):
        settings = settings[part]
    return settings


def test_tta_uses_the_pipeline_in_the_config(config_of, tmp_path):
    (tmp_path / 'views.py').write_text(
        "_base_ = 'tiny.py'\n"
        "tta_model = dict(type='OurTTA')\n"
        "tta_pipeline = [dict(type='OurViews')]\n"
    )
    cfg = config_of('test', 'views.py', 'a.pth', '--tta')
    assert cfg.model.type == 'OurTTA'
    assert cfg.model.module.type == 'ImageClassifier'
    assert cfg.test_dataloader.dataset.pipeline == [dict(type='OurViews')]
    assert len(cfg.val_dataloader.dataset.pipeline) == 3


def test_second_training_in_a_work_dir_is_refused(monkeypatch, capsys):
    work_dir = Path('work_dirs/tiny')
    with locked(work_dir, 'training'):
        code = end_of(monkeypatch, ROOT / 'tools/train.py', 'tiny.py')
        assert [x.name for x in work_dir.iterdir()] == ['.lock']
    error = capsys.readouterr().err
    assert code == 2 and error.count('\n') == 1 and 'in use' in error
    assert not work_dir.exists()


def test_warning_is_printed_if_setting_is_unknown(config_of):
    with pytest.warns(UserWarning, match='setting owl'):
        config_of('train', 'tiny.py', '--cfg-options', 'owl=1')
    with warnings.catch_warnings():
        warnings.simplefilter('error', UserWarning)
        options = ('sync_bn=torch', 'train_cfg.max_epochs=3', 'load_from=a')
        config_of('train', 'tiny.py', '--cfg-options', *options)


def test_damaged_checkpoint_is_refused_before_another_is_tested(run_tool):
    torch.save(get_model('tiny.py').state_dict(), 'model.pth')
    content = Path('model.pth').read_bytes()
    Path('cut.pth').write_bytes(content[: len(content) // 2])
    with (
        patch('mmclca.engine.runner.build_runner') as build_runner,
        pytest.raises(Error, match=r'cut.pth \('),
    ):
        run_tool('test', 'tiny.py', 'model.pth', 'cut.pth')
    assert not build_runner.called


@pytest.mark.parametrize(
    'options, word',
    [
        (dict(interval='x'), "interval='x' must be an integer"),
        (dict(intervals=1), 'intervals'),
        (dict(save_best='acc', rule='greater'), "save_best: no 'acc'"),
        (dict(out_dir=5), 'not int'),
        (dict(save_begin='x'), 'save_begin'),
        (dict(published_keys=5), 'published_keys'),
    ],
    ids=str,
)
def test_wrong_option_of_the_checkpoint_hook_is_refused_in_one_line(
    run_tool, tmp_path, options, word
):
    hook = dict(type='CheckpointHook') | options
    path = tmp_path / 'wrong.py'
    path.write_text(
        f"_base_ = 'tiny.py'\ndefault_hooks = dict(checkpoint={hook})\n"
    )
    with pytest.raises(Error, match=word) as error:
        run_tool('train', 'wrong.py', '--cfg-options', 'custom_hooks=[]')
    assert '\n' not in str(error.value)
