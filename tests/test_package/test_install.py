# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""tools/dev/install.sh with a fake Python."""

import os
import re
import shutil
import subprocess

import pytest
from tiny_run import ROOT

# Records pip calls, and fails if PIP_FAILS is set.
PRETENDER = """#!/bin/sh
case "$1 $2" in
"-V ") echo "Python 3.12.0" ;;
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m pip") shift; echo "$@" >>"$PIP_LOG"; [ -z "${PIP_FAILS:-}" ] ;;
-c*sys.exit*) [ -z "${IS_OLD:-}" ] ;;
esac
"""


@pytest.fixture
def tree(tmp_path):
    tree = tmp_path / 'a tree'  # with a space
    for name in ('tools/dev', 'requirements'):
        shutil.copytree(ROOT / name, tree / name)
    for name in ('mmclca', 'configs', 'tests'):
        (tree / name).mkdir()
    for name in ('setup.py', 'pyproject.toml'):
        shutil.copy2(ROOT / name, tree / name)
    python = tmp_path / 'bin' / 'python3'
    python.parent.mkdir()
    python.write_text(PRETENDER)
    python.chmod(0o755)
    return tree


def install(tree, **env):
    """Run the script from /, with the fake python3 first on the path."""
    path = f'{tree.parent / "bin"}{os.pathsep}{os.environ["PATH"]}'
    return subprocess.run(
        ['sh', tree / 'tools/dev/install.sh'],
        cwd='/',
        env=dict(PATH=path, PIP_LOG=tree.parent / 'pip.log') | env,
        capture_output=True,
        text=True,
    )


def pip_calls(tree):
    log = tree.parent / 'pip.log'
    return log.read_text().splitlines() if log.exists() else []


def test_environment_is_filled_once_and_after_changes(tree):
    first = install(tree)
    assert first.returncode == 0, first.stderr
    assert 'creating .venv with python3 (Python 3.12.0)' in first.stdout
    wanted = 'pip install -c requirements/tested.txt -e .[dev,onedl]'
    assert pip_calls(tree)[-1] == wanted
    calls = len(pip_calls(tree))
    assert '== .venv is up to date' in install(tree).stdout
    assert len(pip_calls(tree)) == calls
    with open(tree / 'pyproject.toml', 'a') as file:
        file.write('# changed\n')
    # free space is not checked without a new environment
    assert 'creating' not in install(tree, DISK_GB='1000000').stdout
    moved = tree.rename(tree.with_name('moved'))
    install(moved)
    assert len(pip_calls(moved)) == 3 * calls


def test_install_adds_the_index_of_torch(tree):
    index = 'https://wheels.example/cpu'
    assert install(tree, TORCH_INDEX=index).returncode == 0
    assert f'--extra-index-url {index} -e .[dev,onedl]' in pip_calls(tree)[-1]


def test_oldest_versions_are_those_of_upstream(tree):
    assert install(tree, VERSIONS='oldest').returncode == 0
    wanted = 'pip install -c requirements/oldest.txt -e .[test,openmmlab]'
    assert pip_calls(tree)[-1] == wanted


@pytest.mark.parametrize('index', ['', 'https://wheels.example/cpu'])
def test_locked_install_checks_all_but_the_torch_of_an_index(tree, index):
    run = install(tree, VERSIONS='locked', TORCH_INDEX=index)
    assert run.returncode == 0, run.stderr
    *others, own = [x for x in pip_calls(tree) if '--require' not in x]
    assert own == 'pip install --no-deps --no-build-isolation -e .'
    assert len(others) == bool(index)
    assert all(x.endswith(f'{index} torch torchvision') for x in others)


def test_install_starts_again_after_failure(tree):
    assert install(tree, PIP_FAILS='1').returncode != 0
    (tree / '.venv' / 'half').touch()
    again = install(tree)
    assert again.returncode == 0, again.stderr
    assert 'removing' in again.stdout
    assert not (tree / '.venv' / 'half').exists()
    (tree / 'setup.py').write_text('# changed\n')
    assert install(tree, PIP_FAILS='1').returncode != 0
    assert 'creating .venv' in install(tree).stdout


def test_install_keeps_environment_if_user_created(tree):
    own = tree / '.venv' / 'bin' / 'python'
    own.parent.mkdir(parents=True)
    shutil.copy2(tree.parent / 'bin' / 'python3', own)
    assert install(tree, PIP_FAILS='1').returncode != 0
    again = install(tree)
    assert again.returncode == 0, again.stderr
    assert 'creating' not in again.stdout and 'removing' not in again.stdout
    subprocess.run(['sh', tree / 'tools/dev/clean.sh'], check=True)
    assert own.exists()
    own.unlink()
    assert '.venv/bin/python' in install(tree).stderr


@pytest.mark.parametrize(
    'env, said',
    [
        (dict(PYTHON='/no/python'), 'PYTHON=/no/python .*3.10'),
        (dict(IS_OLD='1', PYTHON='python3'), 'PYTHON=python3 .*3.10'),
        (dict(DISK_GB='1000000'), r'a tree: \d+ GB .* 10+ GB'),
    ],
)
def test_install_error_names_missing_requirement(env, said, tree):
    run = install(tree, **env)
    assert run.returncode != 0
    assert re.search(said, run.stderr)
    assert not (tree / '.venv').exists()


def test_clean_keeps_data_and_results(tree):
    install(tree)
    for name in ('data', 'work_dirs', 'mmclca/__pycache__'):
        (tree / name).mkdir(parents=True)
    subprocess.run(['sh', tree / 'tools/dev/clean.sh'], check=True)
    left = {path.name for path in tree.iterdir()}
    assert {'data', 'work_dirs'} <= left and '.venv' not in left
    assert not (tree / 'mmclca' / '__pycache__').exists()
