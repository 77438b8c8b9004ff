# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find the checkpoint to resume from."""

import os

import pytest
import torch
from mmengine.config import Config

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.resuming import newest_checkpoint, resume


@pytest.fixture
def write(tmp_path):
    """Function to write a checkpoint one second after the last one."""
    written = []

    def write(name, iters, whole=True):
        path = tmp_path / name
        torch.save(dict(state_dict={}, meta=dict(iter=iters)), path)
        if not whole:
            path.write_bytes(path.read_bytes()[:300])
        written.append(path)
        os.utime(path, (len(written), len(written)))
        return str(path)

    return write


def test_newest_checkpoint_is_chosen_by_number(write, tmp_path):
    assert newest_checkpoint(tmp_path / 'none') == (None, 0)
    newest = write('epoch_10.pth', 40)
    write('epoch_9.pth', 36)
    write('epoch_11-0123abcd.pth', 44)  # published
    write('best_score_epoch_9.pth', 36)
    assert newest_checkpoint(tmp_path) == (newest, 40)


def test_newest_checkpoint_has_most_iterations(write, tmp_path):
    write('epoch_2.pth', 8)
    newest = write('iter_10.pth', 10)
    assert newest_checkpoint(tmp_path) == (newest, 10)
    newest = write('epoch_3.pth', 12)
    assert newest_checkpoint(tmp_path) == (newest, 12)


def test_broken_checkpoint_is_skipped_with_a_warning(write, tmp_path):
    newest = write('epoch_1.pth', 4)
    torch.save(dict(weight=torch.ones(1)), tmp_path / 'epoch_2.pth')
    write('epoch_4.pth', 'many')
    broken = write('epoch_3.pth', 12, whole=False)
    (tmp_path / 'last_checkpoint').write_text(broken)
    with pytest.warns(UserWarning, match=r'epoch_3.pth') as all:
        assert newest_checkpoint(tmp_path) == (newest, 4)
    assert len(all) == 1


def test_older_checkpoints_are_ignored(write, tmp_path):
    write('epoch_50.pth', 200)
    last = write('epoch_1.pth', 4)
    (tmp_path / 'last_checkpoint').write_text(last)
    assert newest_checkpoint(tmp_path) == (last, 4)
    newest = write('epoch_2.pth', 8)  # killed before naming it
    assert newest_checkpoint(tmp_path) == (newest, 8)


def test_last_checkpoint_is_found_if_work_dir_moved(write, tmp_path):
    last = write('mine_3.pth', 12)  # another filename_tmpl
    for named in ('/gone/mine_3.pth', last):
        (tmp_path / 'last_checkpoint').write_text(named)
        assert newest_checkpoint(tmp_path) == (last, 12)
    (tmp_path / 'last_checkpoint').write_text('')  # full disk
    assert newest_checkpoint(tmp_path) == (None, 0)


def test_resume_setting_uses_newest_checkpoint(write, tmp_path, capsys):
    own = dict(work_dir=str(tmp_path), resume=True)
    cfg = Config(own)
    resume(cfg, None)
    assert cfg.resume is False
    assert 'new run' in capsys.readouterr().out
    newest = write('epoch_1.pth', 4)
    cfg = Config(own)
    resume(cfg, None)
    assert (cfg.resume, cfg.load_from) == (True, newest)
    cfg = Config(dict(own, load_from='a.pth'))
    resume(cfg, None)
    assert (cfg.resume, cfg.load_from) == (True, 'a.pth')


def test_resume_is_refused_if_file_is_broken(write, tmp_path):
    cfg = Config(dict(work_dir=str(tmp_path)))
    broken = write('a.pth', 4, whole=False)
    with pytest.raises(CheckpointError, match=r'a.pth.* new run'):
        resume(cfg, broken)
    newest = write('epoch_1.pth', 4)
    with pytest.raises(CheckpointError, match=f'a.pth.* {newest}'):
        resume(cfg, broken)
    with pytest.raises(FileNotFoundError, match=f'b.pth.* {newest}'):
        resume(cfg, 'b.pth')
