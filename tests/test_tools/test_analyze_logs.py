# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json

import matplotlib
import pytest
from tiny_run import ROOT, load_tool

matplotlib.use('agg')
TOOL = ROOT / 'tools/analysis_tools/analyze_logs.py'


def train(epoch, step, loss, time, **more):
    return dict(lr=0.1, epoch=epoch, step=step, loss=loss, time=time, **more)


# three iterations an epoch; the last one of epoch 3 is not logged
RECORDS = [
    train(1, 1, 4.0, 9.0),
    train(1, 3, 3.0, 1.0),
    {'accuracy/top1': 50.0, 'step': 1, 'time': 0.1},
    train(2, 4, 2.0, 9.0, grad_norm=7.0),
    train(2, 6, 2.0, 3.0, grad_norm=5.0),
    {'accuracy/top1': 75.0, 'step': 2, 'time': 0.1},
    train(3, 8, 1.0, 2.0, grad_norm=4.0),
]


def write_log(run, records=RECORDS, name='scalars.json'):
    path = run / 'vis_data' / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(''.join(json.dumps(row) + '\n' for row in records))
    return path


@pytest.fixture
def tool(monkeypatch):
    return lambda *words: load_tool(monkeypatch, TOOL, *words)


@pytest.fixture
def log(tmp_path):
    return write_log(tmp_path / '20260101_000000')


def curves(tool, *words):
    loaded = tool('plot_curve', *words, '--out', 'out.png')
    figure = loaded['plot_curve'](loaded['parse_args']())
    return {
        line.get_label(): line.get_xydata().tolist()
        for line in figure.axes[0].lines
    }


def test_curves_by_epoch(tool, log):
    keys = ('--keys', 'loss', 'accuracy/top1', 'grad_norm')
    drawn = curves(tool, log, *keys)
    assert drawn['accuracy/top1'] == [[1, 50], [2, 75]]
    epochs, losses = zip(*drawn['loss'], strict=True)
    assert epochs == pytest.approx((1 / 3, 1, 4 / 3, 2, 8 / 3))
    assert losses == (4, 3, 2, 2, 1)
    epochs, norms = zip(*drawn['grad_norm'], strict=True)
    assert epochs == pytest.approx((4 / 3, 2, 8 / 3))
    assert norms == (7, 5, 4)


def test_curves_by_iteration(tool, tmp_path):
    rows = [{k: v for k, v in row.items() if k != 'epoch'} for row in RECORDS]
    log = write_log(tmp_path / 'run', rows)
    steps = [1, 3, 4, 6, 8]
    assert [x for x, _ in curves(tool, log)['loss']] == steps


def test_names_of_several_logs(tool, log, tmp_path):
    other = write_log(tmp_path / 'other', RECORDS[:3])
    drawn = curves(tool, log, other, '--keys', 'loss', 'lr')
    assert list(drawn) == [
        '20260101_000000 loss',
        '20260101_000000 lr',
        'other loss',
        'other lr',
    ]
    assert list(curves(tool, log, other, '--legend', 'a', 'b')) == ['a', 'b']


def test_times(tool, log, capsys):
    tool('cal_train_time', log)['main']()
    assert capsys.readouterr().out.splitlines() == [
        f'-----Analyze train time of {log}-----',
        'slowest epoch 2, average time is 3.0000',
        'fastest epoch 1, average time is 1.0000',
        'time std over epochs is 0.8165',
        'average iter time: 4.8000 s/iter',
    ]
    tool('cal_train_time', log, '--include-outliers')['main']()
    said = capsys.readouterr().out
    assert 'slowest epoch 2, average time is 6.0000' in said
    assert 'fastest epoch 3, average time is 2.0000' in said


def test_logs_and_folders_stand_for_their_records(tool, tmp_path):
    find = tool('plot_curve', 'x')['records_file']
    first = write_log(tmp_path / '20260101_000000')
    last = write_log(tmp_path / '20260102_000000')
    assert find(tmp_path) == find(last.parents[1]) == last
    text = first.parents[1] / '20260101_000000.log'
    beside = write_log(first.parents[1], name='20260101_000000.json')
    assert find(text) == beside
    with pytest.raises(FileNotFoundError, match='LocalVisBackend'):
        find(tmp_path / 'vis_data')


@pytest.mark.parametrize(
    'words, says',
    [
        (
            ['--keys', 'losses'],
            "nothing is logged as losses; there are \\['acc",
        ),
        (['--out', 'gone/a.png'], 'there is no folder gone'),
        (['--out', 'a.doc'], 'must end in one of'),
    ],
)
def test_wrong_input(tool, log, words, says):
    out = [] if '--out' in words else ['--out', 'a.png']
    with pytest.raises(SystemExit, match=says):
        tool('plot_curve', log, *words, *out)['main']()


def test_wrong_logs(tool, tmp_path):
    def main(log):
        with pytest.raises(SystemExit) as end:
            tool('cal_train_time', log)['main']()
        return str(end.value)

    assert 'nothing was logged' in main(write_log(tmp_path, RECORDS[2:3]))
    log = write_log(tmp_path)
    log.write_text(log.read_text() + '{"lr": ')
    assert main(log).startswith(f'cal_train_time: {log}: a line is no JSON')
    assert 'there is no' in main(tmp_path / 'gone.json')


def test_wrong_legend(tool, log, capsys):
    with pytest.raises(SystemExit):
        tool('plot_curve', log, '--legend', 'a', 'b')['main']()
    assert '--legend: 2 names, 1 curves' in capsys.readouterr().err
    with pytest.raises(SystemExit):
        tool('plot_curve', log)['main']()
    assert 'give --out FILE' in capsys.readouterr().err
