# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Screen and log file of a fit, which leaves the process as it was."""

import logging
import sys
from types import SimpleNamespace

import pytest
from installed import needs
from mmengine.logging import MMLogger, print_log

from mmclca.engine.hooks import ProgressHook, progress_hook
from mmclca.fitting import log as fit_log
from mmclca.fitting.log import Log, redirected_output
from mmclca.utils.events import ProgressEvent
from mmclca.utils.torch_versions import EXPORTS_LOOPS


def test_log_separates_lines_of_fit_from_library_messages(tmp_path, capsys):
    foreign = MMLogger.get_instance('foreign')
    path = tmp_path / 'model' / 'log.txt'
    with Log() as log:
        print_log('before there is a file', 'current')
        log.open(path)
        print_log('of mmengine', 'current', logging.WARNING)
        log.print('of fit')
        foreign.info('of another package')
    print_log('after it', 'current')
    with Log() as log:
        log.open(path)
        log.print('of a second fit')
    first, second, *others = path.read_text().splitlines()
    assert first.endswith('before there is a file')
    assert second.endswith('of mmengine')
    assert others == ['of fit', 'of a second fit']
    shown = capsys.readouterr().out.splitlines()
    assert [line.split(' - ')[-1] for line in shown] == [
        *('of fit', 'of another package', 'after it', 'of a second fit')
    ]


def test_redirected_output_goes_to_the_log_of_a_fit(tmp_path, capsys):
    with redirected_output(), pytest.raises(ValueError):
        print('from a library')
        print('an error', file=sys.stderr)
        with fit_log.find_log() as log:
            log.open(tmp_path / 'log.txt')
            log.print('of fit')
            raise ValueError
    print('after it')
    assert capsys.readouterr() == ('of fit\nafter it\n', '')
    text = (tmp_path / 'log.txt').read_text()
    assert text == 'from a library\nan error\nof fit\n'


@pytest.mark.parametrize('is_verbose', [False, True])
def test_log_has_technical_lines_and_shows_them_if_verbose(
    tmp_path, capsys, is_verbose
):
    with Log() as log:
        log.is_verbose = is_verbose
        log.open(tmp_path / 'log.txt')
        log.print('data')
        log.add_details(['technical'])
        log.print_plain(['plain'])
    assert (tmp_path / 'log.txt').read_text() == 'data\ntechnical\n'
    shown = 'technical' if is_verbose else 'plain'
    assert capsys.readouterr().out == f'data\n{shown}\n'


def test_parent_gets_technical_lines(monkeypatch):
    events = []
    parent = SimpleNamespace(send=events.append)
    monkeypatch.setattr(fit_log, 'get_parent', lambda: parent)
    with Log() as log:
        log.add_details(['technical'])
        log.print_plain(['plain'])
    assert [x.message for x in events] == ['technical']


def test_status_sends_its_title_to_a_parent(monkeypatch):
    events = []
    parent = SimpleNamespace(send=events.append)
    monkeypatch.setattr(fit_log, 'get_parent', lambda: parent)
    with Log().status('Writing'):
        pass
    assert events == [ProgressEvent('Writing', 0, seconds_left=None)]


def test_log_leaves_no_file_if_a_fit_is_refused(tmp_path):
    with pytest.raises(ValueError), Log() as log:
        log.write('checked')
        raise ValueError
    assert not [*tmp_path.iterdir()]


def check_process(noted, folder):
    """Check that a fit left its process unchanged and printed to its log."""
    before = noted.states[0]
    assert noted.states == [before] * 3
    assert noted.before == noted.after
    lines = (folder / 'log.txt').read_text().splitlines()
    assert {*noted.printed.splitlines()} < {*lines} and not noted.errors
    # unclosed resources of earlier tests
    assert {x.category for x in noted.warned} <= {ResourceWarning}


def test_fit_changes_no_output_or_setting_of_its_process(noted, place):
    check_process(noted, place / 'model')


@pytest.mark.slow
@needs('torch', EXPORTS_LOOPS)
def test_fit_with_onnx_changes_nothing_in_its_process(
    noted_fit, place, tmp_path
):
    check_process(noted_fit(place, tmp_path, runtime='onnx'), tmp_path)


def test_progress_hook_prints_remaining_time_after_two_epochs(monkeypatch):
    printed, clock = [], iter([100.0, 110.0, 150.0])
    monkeypatch.setattr(
        progress_hook.time, 'perf_counter', lambda: next(clock)
    )
    hook = ProgressHook(printed.append, 'Training', 60)
    for done in (8, 16, 24):  # steps at the end of each epoch
        hook.after_train_epoch(SimpleNamespace(iter=done, max_iters=28))
    # 10 s for 8 steps, and 12 and 60 are left
    assert len(printed) == 1 and '1.5 min' in printed[0]
