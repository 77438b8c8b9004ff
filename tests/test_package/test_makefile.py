# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""``make install`` and its helpers, with a Python that only pretends."""

import os
import re
import shutil
import subprocess

import pytest
from tiny_run import ROOT

# Writes down what pip is asked for; fails it where told to.
PRETENDER = """#!/bin/sh
case "$1 $2" in
"-V ") echo "Python 3.12.0" ;;
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m pip") shift; echo "$@" >>"$PIP_LOG"; [ -z "${PIP_FAILS:-}" ] ;;
-c*sys.exit*) [ -z "${IS_OLD:-}" ] ;;
-c*ensurepip*) [ -z "${NO_VENV:-}" ] ;;
esac
"""


@pytest.fixture
def tree(tmp_path):
    tree = tmp_path / 'a tree'  # with a space
    (tree / 'tools').mkdir(parents=True)
    shutil.copytree(ROOT / 'tools' / 'dev', tree / 'tools' / 'dev')
    for name in ('Makefile', 'setup.py', 'pyproject.toml'):
        shutil.copy2(ROOT / name, tree / name)
    python = tmp_path / 'bin' / 'python3'
    python.parent.mkdir()
    python.write_text(PRETENDER)
    python.chmod(0o755)
    return tree


def make(tree, *arguments, path=None, **env):
    """Run make from elsewhere; only the pretending python3 is on the path."""
    bin_folder = tree.parent / 'bin'
    path = path or f'{bin_folder}{os.pathsep}{os.environ["PATH"]}'
    env = dict(PATH=path, PIP_LOG=tree.parent / 'pip.log', **env)
    return subprocess.run(
        [shutil.which('make'), '-C', tree, *arguments],
        cwd='/',
        env=env,
        capture_output=True,
        text=True,
    )


def pip_calls(tree):
    log = tree.parent / 'pip.log'
    return log.read_text().splitlines() if log.exists() else []


def test_install_fills_venv_once(tree):
    first = make(tree, 'install')
    assert first.returncode == 0, first.stderr
    assert '== making .venv with python3 (Python 3.12.0)' in first.stdout
    assert '== .venv is ready' in first.stdout
    assert pip_calls(tree)[-1] == 'pip install -e .[dev]'
    calls = len(pip_calls(tree))
    again = make(tree, 'install')
    assert '== .venv is up to date' in again.stdout
    assert len(pip_calls(tree)) == calls


@pytest.mark.parametrize('name', ['setup.py', 'pyproject.toml'])
def test_changed_requirements_are_installed(name, tree):
    make(tree, 'install')
    calls = len(pip_calls(tree))
    with open(tree / name, 'a') as file:
        file.write('# changed\n')
    run = make(tree, 'install')
    assert 'making .venv' not in run.stdout
    assert len(pip_calls(tree)) == 2 * calls


def test_moved_tree_is_installed_anew(tree):
    make(tree, 'install')
    calls = len(pip_calls(tree))
    moved = tree.rename(tree.with_name('moved'))
    make(moved, 'install')
    assert len(pip_calls(moved)) == 2 * calls


def test_failed_install_is_made_anew(tree):
    failed = make(tree, 'install', PIP_FAILS='1')
    assert failed.returncode != 0
    (tree / '.venv' / 'half').touch()
    run = make(tree, 'install')
    assert run.returncode == 0, run.stderr
    assert '== removing an unfinished or broken .venv' in run.stdout
    assert not (tree / '.venv' / 'half').exists()


def test_failed_update_is_made_anew(tree):
    make(tree, 'install')
    (tree / 'setup.py').write_text('# changed\n')
    assert make(tree, 'install', PIP_FAILS='1').returncode != 0
    assert 'making .venv' in make(tree, 'install').stdout


def test_broken_venv_is_made_anew(tree):
    make(tree, 'install')
    (tree / '.venv' / 'bin' / 'python').unlink()
    assert 'making .venv' in make(tree, 'install').stdout


def test_venv_made_by_hand_is_filled_and_kept(tree):
    own = tree / '.venv' / 'bin' / 'python'
    own.parent.mkdir(parents=True)
    shutil.copy2(tree.parent / 'bin' / 'python3', own)
    assert make(tree, 'install', PIP_FAILS='1').returncode != 0
    run = make(tree, 'install')
    assert run.returncode == 0, run.stderr
    assert 'making' not in run.stdout and 'removing' not in run.stdout
    make(tree, 'clean')
    assert own.exists()
    own.unlink()
    run = make(tree, 'install')
    assert run.returncode != 0 and 'was not made here' in run.stderr


def test_named_interpreter_is_used(tree):
    named = tree.parent / 'other-python'
    shutil.copy2(tree.parent / 'bin' / 'python3', named)
    run = make(tree, 'install', f'PYTHON={named}')
    assert f'== making .venv with {named}' in run.stdout


def test_named_interpreter_must_fit(tree):
    run = make(tree, 'install', 'PYTHON=/no/python')
    assert run.returncode != 0
    assert 'PYTHON=/no/python is no Python >= 3.10 that runs' in run.stderr
    assert not (tree / '.venv').exists()


@pytest.mark.parametrize('has_old_one', [True, False])
def test_missing_python_is_said(has_old_one, tree):
    commands = tree.parent / 'commands'
    commands.mkdir()
    for name in ('sh', 'dirname', 'cat', 'cksum'):
        (commands / name).symlink_to(shutil.which(name))
    if has_old_one:
        shutil.copy2(tree.parent / 'bin' / 'python3', commands)
    run = make(tree, 'install', path=str(commands), IS_OLD='1')
    assert run.returncode != 0
    assert 'no Python >= 3.10 found' in run.stderr
    assert 'make install PYTHON=/path/to/python3' in run.stderr
    assert not (tree / '.venv').exists()


def test_missing_venv_module_is_said(tree):
    run = make(tree, 'install', 'PYTHON=python3', NO_VENV='1')
    assert run.returncode != 0
    assert 'apt install python3-venv' in run.stderr


def test_missing_disk_space_is_said(tree):
    run = make(tree, 'install', 'DISK_GB=1000000')
    assert run.returncode != 0
    assert re.search(r'\d+ GB are free in .*a tree, about 1000000', run.stderr)
    assert not (tree / '.venv').exists()


def test_disk_space_is_asked_only_for_a_new_venv(tree):
    make(tree, 'install')
    assert make(tree, 'install', 'DISK_GB=1000000').returncode == 0


def test_clean_keeps_data_and_results(tree):
    make(tree, 'install')
    for name in ('data', 'work_dirs', 'build', 'mmclca/__pycache__'):
        (tree / name).mkdir(parents=True)
    for name in ('configs', 'tests'):
        (tree / name).mkdir()
    assert make(tree, 'clean').returncode == 0
    left = {path.name for path in tree.iterdir()}
    assert {'data', 'work_dirs'} <= left
    assert not left & {'.venv', 'build'}
    assert not (tree / 'mmclca' / '__pycache__').exists()


def test_help_names_every_target():
    makefile = (ROOT / 'Makefile').read_text()
    printed = make(ROOT, 'help').stdout
    for target in re.search(r'PHONY: help (.*)', makefile)[1].split():
        assert f'make {target} ' in printed


@pytest.mark.parametrize(
    'target, first, last',
    [
        ('demo', 'tools/dev/install.sh', 'tools/demo.py'),
        ('test', 'tools/dev/install.sh', " -m 'alone' tests/test_benchmark"),
        ('test-slow', 'tools/dev/install.sh', " -m 'slow and not gpu'"),
        ('lint', 'tools/dev/install.sh', 'tools/dev/lint.sh'),
    ],
)
def test_targets_install_first(target, first, last):
    lines = make(ROOT, '-n', '--no-print-directory', target).stdout.split('\n')
    assert lines[0].endswith(first)
    assert lines[-2].endswith(last)
