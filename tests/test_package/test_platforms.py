# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Windows and macOS, as far as they can be imitated here."""

import ast
import ntpath
import os
import signal
import subprocess
import sys
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from installed import HAS_GRADIO, NEEDS_GRADIO
from tiny_run import ROOT, run_python

from mmclca.benchmark import peak_memory
from mmclca.checkpoints.gate import folders
from mmclca.datasets import image_files
from mmclca.datasets.photos import LabeledImages, lists
from mmclca.fitting import fine_tuning
from mmclca.fitting.log import file_limit
from mmclca.page import names, process
from mmclca.utils import events, files, provenance
from mmclca.utils.files import replace_bytes

if HAS_GRADIO:
    from mmclca.page import server

SOURCES = [
    path
    for folder in ('mmclca', 'tools', 'demo', 'examples')
    for path in sorted((ROOT / folder).rglob('*.py'))
]
# modules and names that Python has on POSIX systems alone
POSIX_MODULES = 'fcntl', 'grp', 'posix', 'pty', 'pwd', 'resource', 'termios'
IMPORT_AS_ON_WINDOWS = f"""
import importlib, os, pkgutil, signal, sys
import gradio, mmpretrain.apis, submitit, timm, torch, transformers
import sklearn.linear_model, matplotlib.pyplot
for name in {POSIX_MODULES}:
    sys.modules[name] = None
for module, names in [
    (os, 'fork getloadavg getuid geteuid killpg setsid getpgid O_DIRECTORY '
         'O_NOFOLLOW O_NONBLOCK'),
    (signal, 'SIGKILL SIGALRM SIGUSR1 SIGHUP SIGQUIT setitimer pthread_kill'),
]:
    for name in names.split():
        delattr(module, name)
import mmclca
for module in pkgutil.walk_packages(mmclca.__path__, 'mmclca.'):
    importlib.import_module(module.name)
print('mmclca.page.child' in sys.modules, 'mmclca.sweep' in sys.modules)
"""


@pytest.fixture
def windows(monkeypatch):
    monkeypatch.setattr(sys, 'platform', 'win32')


@NEEDS_GRADIO
@pytest.mark.slow
def test_all_modules_import_without_posix(tmp_path):
    run = run_python('-W', 'ignore', '-c', IMPORT_AS_ON_WINDOWS, cwd=tmp_path)
    assert run.stdout.splitlines()[-1:] == ['True True'], run.stderr


SPAWN = """
import multiprocessing
import sys

from mmclca.cli import run_command

if __name__ == '__main__':
    multiprocessing.set_start_method('spawn')
    sys.argv[1:] = ['leaves', '--classes', '2', '--per-class', '4',
                    '--size', '32', '--jobs', '2']
    run_command('synthetic-leaves')
"""


@pytest.mark.slow
def test_leaves_are_drawn_by_spawned_processes(tmp_path):
    (tmp_path / 'draw.py').write_text(SPAWN, 'utf-8')
    run_python('-W', 'ignore', 'draw.py', cwd=tmp_path)
    assert len([*tmp_path.glob('leaves/images/*/*.jpg')]) == 8


def has_encoding(call):
    """Return whether a call opens a text with a stated encoding, or bytes."""
    name = getattr(call.func, 'attr', getattr(call.func, 'id', ''))
    if any(keyword.arg == 'encoding' for keyword in call.keywords):
        return True
    if name == 'read_text':
        return bool(call.args)
    if name == 'write_text':
        return len(call.args) > 1
    if getattr(call.func, 'id', '') == 'open':
        mode = ast.unparse(call.args[1]) if len(call.args) > 1 else ''
        return 'b' in mode
    return True


def test_texts_are_opened_with_an_encoding():
    without = [
        f'{path.relative_to(ROOT)}:{node.lineno}'
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text('utf-8')))
        if isinstance(node, ast.Call) and not has_encoding(node)
    ]
    assert len(SOURCES) > 300 and not without


def test_names_of_files_in_the_repository_are_valid_on_windows():
    listed = subprocess.run(
        ['git', 'ls-files', '-s', '-z'], cwd=ROOT, capture_output=True
    ).stdout.decode()
    if not listed:
        pytest.skip('.git is missing')
    entries = listed.rstrip('\0').split('\0')
    paths = [entry.partition('\t')[2] for entry in entries]
    assert len({path.casefold() for path in paths}) == len(paths)
    assert not [entry for entry in entries if entry.startswith('120000')]
    for path in paths:
        assert len(path) < 160, path  # 260 with the folder of the clone
        for part in path.split('/'):
            assert names._allow_on_windows(part) == part, path


def test_load_averages_come_from_psutil_on_windows(windows, monkeypatch):
    monkeypatch.delattr(os, 'getloadavg')
    psutil = SimpleNamespace(getloadavg=lambda: (1.5, 1.0, 0.5))
    monkeypatch.setitem(sys.modules, 'psutil', psutil)
    assert provenance.load_averages() == (1.5, 1.0, 0.5)


def test_replaced_file_is_synced_for_writing_on_windows(
    windows, tmp_path, monkeypatch
):
    opened = []

    def note(path, flags):
        opened.append(flags)
        return os.open(path, flags)

    imitated = SimpleNamespace(**{**vars(os), 'open': note})
    monkeypatch.setattr(files, 'os', imitated)
    replace_bytes(tmp_path / 'a.csv', b'1\n')
    assert (tmp_path / 'a.csv').read_bytes() == b'1\n'
    assert opened[0] == os.O_RDWR


def test_error_advises_to_close_an_open_file_on_windows(
    windows, tmp_path, monkeypatch
):
    def refuse(*_):
        raise PermissionError(13, 'Access is denied')

    imitated = SimpleNamespace(**{**vars(os), 'replace': refuse})
    monkeypatch.setattr(files, 'os', imitated)
    monkeypatch.setattr(files, '_sync', lambda path: None)
    with pytest.raises(OSError, match=r'results\.csv.*close'):
        replace_bytes(tmp_path / 'results.csv', b'1\n')
    assert not [*tmp_path.iterdir()]


def test_files_are_read_without_folder_handles(tmp_path, monkeypatch):
    content = b'a\r\nb\x1ac\r\n'  # a text on Windows ends at 0x1a
    (tmp_path / 'new').mkdir()
    (tmp_path / 'new' / 'a.bin').write_bytes(content)
    (tmp_path / 'a.bin').write_bytes(b'old')
    binary, opened = 0x8000, []

    def note(path, flags, dir_fd):
        opened.append((flags & binary, dir_fd))
        return os.open(path, flags & ~binary)

    monkeypatch.setattr(folders, '_HAS_HANDLES', False)
    monkeypatch.setattr(folders, '_BINARY', binary)
    folders.replace_files(tmp_path, tmp_path / 'new', ['a.bin'])
    imitated = SimpleNamespace(**{**vars(os), 'open': note})
    monkeypatch.setattr(folders, 'os', imitated)
    assert folders.read_file(tmp_path, 'a.bin') == content
    assert opened == [(binary, None)]
    assert [path.name for path in tmp_path.iterdir()] == ['a.bin']


def test_lists_have_slashes_on_windows(monkeypatch):
    photos = LabeledImages.from_names(
        [r'C:\data\oak\1.jpg', r'C:\data\ash\ü 2.jpg'], ['oak', 'ash'], '', []
    )
    imitated = SimpleNamespace(path=ntpath, sep=ntpath.sep)
    monkeypatch.setattr(lists, 'os', imitated)
    written = lists.format_lists(photos, 'C:\\data' / PurePosixPath('.'))
    assert [*written.values()][1] == ['oak/1.jpg 1', 'ash/ü 2.jpg 0']


def test_patterns_accept_separators_of_windows(monkeypatch):
    imitated = SimpleNamespace(**{**vars(os), 'sep': '\\'})
    monkeypatch.setattr(image_files, 'os', imitated)
    monkeypatch.setattr(
        image_files, '_folders_from', lambda top: [f'{top}a\\']
    )
    monkeypatch.setattr(image_files.glob, 'glob', lambda pattern: [pattern])
    for pattern in ('photos\\**\\*.jpg', 'photos\\**/*.jpg'):
        assert image_files._glob(pattern) == ['photos\\a\\*.jpg']


def test_upload_names_are_valid_on_windows(windows):
    path = names.normalize_path('Sorte: "rot"/con.jpg')
    assert path.parts == ('Sorte_ _rot_', '_con.jpg')
    assert names.normalize_path('a./b ').parts == ('a_', 'b_')
    assert names.safe_name('AUX') == '_AUX'


@pytest.mark.parametrize(
    'platform, unique',
    [
        ('linux', ['a/X.jpg', 'a/x.jpg']),
        ('darwin', ['a/X.jpg', 'a/x (2).jpg']),
    ],
)
def test_uploads_do_not_replace_each_other(platform, unique, monkeypatch):
    monkeypatch.setattr(sys, 'platform', platform)
    paths = [PurePosixPath('a/X.jpg'), PurePosixPath('a/x.jpg')]
    assert [*map(str, names.distinct(paths))] == unique


def test_peak_memory_is_measured_without_resource(monkeypatch):
    monkeypatch.setitem(sys.modules, 'resource', None)
    monkeypatch.setattr(peak_memory, 'PROCESS', Path('/missing'))
    memory = SimpleNamespace(peak_wset=3 * 2**20)
    fake = SimpleNamespace(memory_info=lambda: memory)
    psutil = SimpleNamespace(Process=lambda: fake)
    monkeypatch.setitem(sys.modules, 'psutil', psutil)
    assert peak_memory.get_peak_memory() == 3


def test_file_limit_is_ignored_without_resource(monkeypatch):
    monkeypatch.setitem(sys.modules, 'resource', None)
    with file_limit():
        pass


@pytest.mark.parametrize(
    'platform, workers', [('linux', 2), ('win32', 0), ('darwin', 0)]
)
def test_fine_tuning_starts_workers_only_with_fork(
    platform, workers, monkeypatch
):
    monkeypatch.setattr(sys, 'platform', platform)
    monkeypatch.setattr(os, 'cpu_count', lambda: 8)
    assert fine_tuning.count_workers() == workers


def test_child_is_killed_without_process_groups(windows, monkeypatch):
    killed = []

    def wait(seconds):
        raise subprocess.TimeoutExpired('child', seconds)

    child = process.ChildProcess.__new__(process.ChildProcess)
    child._process = SimpleNamespace(
        wait=wait, kill=lambda: killed.append(True), pid=1
    )
    monkeypatch.delattr(os, 'killpg')
    child._kill_late()
    assert killed == [True]


def test_child_is_interrupted_without_kill(windows, monkeypatch):
    raised = []
    monkeypatch.setattr(signal, 'raise_signal', raised.append)
    monkeypatch.setattr(events.os, 'read', lambda *_: b'')
    monkeypatch.setattr(events.time, 'sleep', lambda seconds: None)
    monkeypatch.setattr(events.os, '_exit', raised.append)
    events._end_with_parent()
    assert raised == [signal.SIGINT, events.INTERRUPTED]


@NEEDS_GRADIO
def test_folders_of_killed_pages_are_removed_on_windows(
    windows, tmp_path, monkeypatch
):
    monkeypatch.setattr(server, 'gettempdir', lambda: str(tmp_path))
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    monkeypatch.delattr(os, 'getuid')
    killed = tmp_path / 'mmclca-page-1'
    killed.mkdir()
    (killed / 'lock').touch()
    os.utime(killed / 'lock', (0, 0))
    with server._private_folder() as folder:
        assert folder.exists() and not killed.exists()
    assert not [*tmp_path.iterdir()]
