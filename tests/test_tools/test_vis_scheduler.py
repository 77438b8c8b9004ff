# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import matplotlib
import mmcv
import pytest
from tiny_run import ROOT, load_tool, write_run

matplotlib.use('agg')
TOOL = ROOT / 'tools/visualization/vis_scheduler.py'
NAME = 'clca-evit-kr10_vit-base-p16_1xb32-50e_cotton80-448px'
SCHEDULE = """
param_scheduler = [
    dict(type='mmclca.WarmupCosineLR', T_max=4, warmup=1, start_factor=0.1)
]
train_cfg = dict(by_epoch=True, max_epochs=6)
"""


def share(step):
    """Of the base learning rate, in the schedule above."""
    if step < 1:
        return 0.1 + 0.9 * step
    return (1 + math.cos(math.pi * min(step / 4, 1))) / 2


@pytest.fixture
def config(tmp_path):
    path = write_run(tmp_path)
    path.write_text(path.read_text() + SCHEDULE)
    return path


@pytest.fixture
def values(monkeypatch):
    """Runs the tool in this process; gives what it draws."""

    def values(*arguments):
        tool = load_tool(monkeypatch, TOOL, *arguments)
        return tool['visualize'](tool['parse_args']())

    return values


@pytest.fixture
def main(monkeypatch):
    return lambda *words: load_tool(monkeypatch, TOOL, *words)['main']()


def test_by_epoch(config, values):
    drawn = values(config)  # 16 images, batches of 4
    wanted = [1e-3 * share(i // 4) for i in range(24)]
    assert drawn == pytest.approx(wanted)


def test_by_iteration(config, values):
    option = 'param_scheduler.0.convert_to_iter_based=True'
    drawn = values(config, '--dataset-size', 20, '--cfg-options', option)
    wanted = [1e-3 * share(i / 5) for i in range(30)]
    assert drawn == pytest.approx(wanted)


def test_training_that_counts_iterations(config, values):
    more = """
train_cfg = dict(by_epoch=False, max_iters=10)
param_scheduler[0].update(by_epoch=False)
train_dataloader = dict(batch_size=4, dataset=dict(type='NotAsked'))
"""
    config.write_text(config.read_text() + more)
    assert values(config) == pytest.approx(
        [1e-3 * share(i) for i in range(10)]
    )


def test_processes_and_last_batches(config, values):
    assert len(values(config, '-d', 21, '-n', 2)) == 6 * 3  # 11 images each
    dropped = config.read_text() + 'train_dataloader["drop_last"] = True\n'
    config.write_text(dropped)
    assert len(values(config, '-d', 21, '-n', 2)) == 6 * 2
    assert len(values(config, '-d', 1)) == 6


def test_layer_wise_decay(config, values):
    options = (
        '--cfg-options',
        'optim_wrapper.constructor=LearningRateDecayOptimWrapperConstructor',
        'optim_wrapper.paramwise_cfg.layer_decay_rate=0.7',
    )
    assert values(config, *options) == values(config)


def test_other_parameters(config, values):
    option = 'optim_wrapper.optimizer.betas=(0.8,0.9)'
    momentum = values(config, '-p', 'momentum', '--cfg-options', option)
    assert set(momentum) == {0.8}
    option = 'optim_wrapper.optimizer.weight_decay=0.03'
    decay = values(config, '-p', 'wd', '--cfg-options', option)
    assert set(decay) == {0.03} and len(decay) == 24


def test_picture_of_a_name_without_data(main, tmp_path, capsys):
    out = tmp_path / 'lr.png'
    main(NAME, '-d', 240, '--save-path', out, '--window-size', '8*4')
    picture = mmcv.imread(out)
    assert picture.shape == (400, 800, 3)
    blue = (picture == (168, 108, 27)).all(2)  # BGR of the curve
    rows, columns = blue.nonzero()
    assert columns.max() - columns.min() > 600 and len(set(rows)) > 200
    said = capsys.readouterr().out
    assert '240 training images, 7 iterations an epoch' in said
    assert '350 iterations drawn' in said and 'WarmupCosineLR' in said


@pytest.mark.parametrize(
    'arguments, says',
    [
        (['-s', 'gone/lr.png'], 'there is no folder gone'),
        (['-s', 'lr.txt'], 'must end in one of'),
        ([], 'give --save-path FILE'),
        (['-s', 'lr.png'], 'give the number of its images: --dataset-size N'),
        (
            ['-s', 'lr.png', '--cfg-options', 'optim_wrapper=None'],
            'the config has no optim_wrapper.optimizer',
        ),
        (
            ['-s', 'lr.png', '-d', '9', '--cfg-options']
            + ['param_scheduler.0.warmup=50'],
            'warmup=50 must be at least 0 and below',
        ),
    ],
)
def test_wrong_input(main, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('MMCLCA_DATA', 'nowhere')
    with pytest.raises(SystemExit) as end:
        main(NAME, *arguments)
    assert str(end.value).startswith(NAME) and says in str(end.value)
    assert '\n' not in str(end.value)


def test_wrong_window(main, capsys):
    with pytest.raises(SystemExit):
        main(NAME, '--window-size', '0*7')
    assert 'width*height in whole inches' in capsys.readouterr().err
