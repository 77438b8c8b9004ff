# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import multiprocessing
import os
import signal
import time
from random import Random

import filelock
import pytest
from hostile import few_and_many

from mmclca.checkpoints.gate.folders import (
    WHOLE,
    find_newest,
    finish_replacing,
    locked,
    read_file,
    remove_folder,
    replace_files,
)
from mmclca.checkpoints.model_folder import is_fitted

NAMES = ('model.pth', 'fit.json')
PROCESSES = multiprocessing.get_context('forkserver')
USERS = 3


@pytest.fixture
def folder(tmp_path):
    """Folder with a replacement killed after the first file."""
    folder = tmp_path / 'model'
    (folder / WHOLE).mkdir(parents=True)
    (folder / 'model.pth').write_text('new')
    (folder / 'fit.json').write_text('old')
    (folder / WHOLE / 'fit.json').write_text('new')
    return folder


def test_reader_sees_new_files_if_replacement_was_killed(folder):
    before = {*folder.rglob('*')}
    assert is_fitted(folder)
    assert {read_file(folder, name) for name in NAMES} == {b'new'}
    assert {*folder.rglob('*')} == before


def test_writer_completes_replacement_that_was_killed(folder):
    finish_replacing(folder, NAMES)
    assert (folder / 'fit.json').read_text() == 'new'
    assert not (folder / WHOLE).exists()


def test_replacement_removes_file_if_new_one_is_empty(folder):
    (folder / 'draft').mkdir()
    (folder / 'draft/model.pth').touch()
    replace_files(folder, folder / 'draft', NAMES)
    assert [path.name for path in folder.iterdir()] == ['fit.json']


def test_replacement_refuses_unknown_names(folder):
    (folder / WHOLE / '.bashrc').write_text('x')
    with pytest.raises(ValueError, match='bashrc'):
        finish_replacing(folder, NAMES)
    assert not (folder / '.bashrc').exists()


@pytest.mark.parametrize('name', ['fit.json', f'{WHOLE}/fit.json'])
def test_link_to_a_file_is_refused(folder, tmp_path, name):
    (tmp_path / 'secret').write_text('secret')
    (folder / name).unlink()
    (folder / name).symlink_to(tmp_path / 'secret')
    for action in (find_newest, read_file):
        with pytest.raises(ValueError, match=f'{name} is a symbolic link'):
            action(folder, 'fit.json')


def test_remove_folder_refuses_a_link(folder, tmp_path):
    (tmp_path / 'link').symlink_to(folder)
    with pytest.raises(ValueError, match='is a symbolic link'):
        remove_folder(tmp_path / 'link')
    remove_folder(folder)
    assert not folder.exists()


def use(folder, seed):
    """Lock a folder until the end or a kill, and note both in a journal."""
    random = Random(seed)

    def note(word):
        with open(folder / 'journal', 'a') as journal:
            journal.write(f'{word} ')

    time.sleep(random.random() / 50)
    try:
        with locked(folder, 'test'):
            note('locked')
            if os.fork() == 0:  # a worker, which outlives a kill
                time.sleep(1)
                os._exit(0)
            time.sleep(random.random() / 100)
            note('freed')
            if random.random() < 0.5:
                os.kill(os.getpid(), signal.SIGKILL)
    except ValueError:
        note('refused')


@pytest.mark.skipif(
    int(filelock.__version__.split('.')[0]) < 4,
    reason='older filelock keeps locks in forked processes',
)
@few_and_many(1, 60)
def test_one_of_several_users_has_a_lock_and_kills_free_it(
    attack, tries, tmp_path
):
    PROCESSES.set_forkserver_preload(['mmclca.checkpoints.gate.folders'])

    def attempt(random):
        (tmp_path / 'journal').write_text('')
        seeds = [random.random() for _ in range(USERS)]
        users = [
            PROCESSES.Process(target=use, args=(tmp_path, seed))
            for seed in seeds
        ]
        for user in users:
            user.start()
        for user in users:
            user.join()
        words = (tmp_path / 'journal').read_text().split()
        held = [word for word in words if word != 'refused']
        assert held == ['locked', 'freed'] * (len(held) // 2), words
        with locked(tmp_path, 'test'):
            assert len(words) == len(held) // 2 + USERS, words

    attack.run('several users and kills of a locked folder', tries, attempt)
