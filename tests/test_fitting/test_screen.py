# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import logging
import sys
from types import SimpleNamespace

import pytest
from mmengine.logging import MMLogger, print_log

from mmclca.engine.hooks import ProgressHook, progress_hook
from mmclca.fitting.screen import Log


def test_libraries_write_to_the_file_and_the_user_sees_lines(tmp_path, capsys):
    logger = MMLogger.get_instance('quiet')
    path = tmp_path / 'model' / 'log.txt'
    with Log() as log:
        print('before there is a file')
        log.open(path)
        print_log('of mmengine', logger=logger, level=logging.INFO)
        print('an error', file=sys.stderr)
        log.print('of fit')
    print('after it')
    logger.info('after it, too')
    said, errors = capsys.readouterr()
    with Log() as log:
        log.open(path)
        log.print('of a second call')
    lines = path.read_text().splitlines()
    assert lines[0] == 'before there is a file'
    assert lines[1].endswith('of mmengine')
    assert lines[2:] == ['an error', 'of fit', 'of a second call']
    assert said.startswith('of fit\nafter it\n') and not errors
    assert 'after it, too' in said


def test_a_call_that_is_refused_leaves_no_file(tmp_path, capsys):
    with pytest.raises(ValueError), Log():
        print('looked at')
        raise ValueError
    print('seen')
    assert capsys.readouterr().out == 'seen\n'
    assert not [*tmp_path.iterdir()]


def test_the_time_left_is_that_of_the_steps_left(monkeypatch):
    told, clock = [], iter([100.0, 110.0, 150.0])
    monkeypatch.setattr(
        progress_hook.time, 'perf_counter', lambda: next(clock)
    )
    hook = ProgressHook(sys.stderr, told.append, 'Training', 60)
    for done in (8, 16, 24):  # steps that are done when an epoch ends
        hook.after_train_epoch(SimpleNamespace(iter=done, max_iters=28))
    # 10 s for 8 steps, and 12 and 60 are left
    assert len(told) == 1 and '1.5 min' in told[0]
