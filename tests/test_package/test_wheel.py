# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The wheel, installed outside the checkout, and mim commands."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import yaml
from installed import needs
from tiny_photos import write_photos, write_weights
from tiny_run import ROOT, write_run

# setuptools needs it to build
pytestmark = [pytest.mark.slow, needs('packaging', '24.2')]
first = pytest.mark.first

BUILD_SDIST = """
import sys
from setuptools.build_meta import build_sdist
build_sdist(sys.argv[1])
"""


def git_files():
    """Return all files that git tracks or would track."""
    listed = subprocess.run(
        ['git', 'ls-files', '-z', '-co', '--exclude-standard'],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = filter(None, listed.split('\0'))
    return [name for name in names if (ROOT / name).is_file()]


@pytest.fixture(scope='module')
def sources(tmp_path_factory):
    """Copy of the git files, to build outside the checkout."""
    if not (ROOT / '.git').exists():
        pytest.skip('.git is missing, which knows what to ship: git clone')
    folder = tmp_path_factory.mktemp('sources')
    for name in git_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope='module')
def wheel(sources, tmp_path_factory):
    """Wheel built from the source distribution."""
    dist = tmp_path_factory.mktemp('dist')
    python = [sys.executable, '-W', 'ignore']
    subprocess.run([*python, '-c', BUILD_SDIST, dist], cwd=sources, check=True)
    (sdist,) = dist.glob('mmclca-*.tar.gz')
    wheel_from = ['-m', 'pip', 'wheel', '--no-deps', '--no-build-isolation']
    subprocess.run(
        [*python, *wheel_from, '-w', dist, sdist], cwd=dist, check=True
    )
    (path,) = dist.glob('mmclca-*-py3-none-any.whl')
    return path


@pytest.fixture(scope='module')
def python(wheel, tmp_path_factory):
    """Interpreter with the wheel and the installed dependencies."""
    folder = tmp_path_factory.mktemp('venv')
    make_venv = ['-m', 'venv', '--without-pip', folder]
    subprocess.run([sys.executable, *make_venv], check=True)
    python = folder / 'bin' / 'python'
    install = ['--python', python, 'install', '--no-deps', wheel]
    subprocess.run([sys.executable, '-m', 'pip', *install], check=True)
    # A path in a .pth file is searched last; .pth files in that folder,
    # such as editable installs, are not read.
    (packages,) = folder.glob('lib/python*/site-packages')
    beside = sysconfig.get_paths()['purelib']
    (packages / 'beside.pth').write_text(f'{beside}\n')
    return python


@pytest.fixture
def run(python, tmp_path):
    """Run this interpreter outside the checkout."""
    hidden = ('PYTHONPATH', 'MMCLCA_DATA')
    env = {k: v for k, v in os.environ.items() if k not in hidden}
    env.update(OMP_NUM_THREADS='1', COLUMNS='200', PAGER='cat')

    def run(*arguments):
        done = subprocess.run(
            [python, *map(str, arguments)],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def mim(run):
    return lambda *arguments: run('-m', 'mim', *arguments)


def files_below(folder):
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob('*')
        if path.is_file()
    }


@first
def test_wheel_holds_package_tools_and_configs(wheel, sources):
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {f'mmclca/{name}' for name in files_below(sources / 'mmclca')}
    assert package <= names
    for name in files_below(sources / 'configs'):
        assert f'mmclca/.mim/configs/{name}' in names
    for name in ('tools/train.py', 'model-index.yml', 'dataset-index.yml'):
        assert f'mmclca/.mim/{name}' in names
    ours = {name for name in names if name.startswith('mmclca/.mim/')}
    assert not {'dev', 'research'} & {
        part for n in ours for part in n.split('/')
    }
    copy = {name for name in names if name.startswith('+mmclca/.mim/')}
    assert {f'+{name}' for name in ours} == copy
    # not in the wheel if it was built without npm or a network
    runtime = {n for n in names if '/deployment/web/runtime/' in n}
    information = f'mmclca-{wheel.name.split("-")[1]}.dist-info/'
    assert all(
        n.startswith(information)
        for n in names - package - ours - copy - runtime
    )


def test_build_leaves_the_sources_unchanged(wheel, sources):
    changed = files_below(sources) - set(git_files())
    assert all(name.startswith('mmclca.egg-info/') for name in changed)


def test_deleted_file_leaves_the_next_build(sources, tmp_path):
    tree = tmp_path / 'tree'
    shutil.copytree(sources, tree)
    build = [sys.executable, '-W', 'ignore', 'setup.py', '-q', 'build']
    (tree / 'tools' / 'passing.py').touch()
    subprocess.run(build, cwd=tree, check=True)
    assert (tree / 'build/lib/mmclca/.mim/tools/passing.py').exists()
    (tree / 'tools' / 'passing.py').unlink()
    subprocess.run(build, cwd=tree, check=True)
    assert not list(tree.rglob('passing.py'))


def test_installed_package_is_the_wheels(run, python):
    code = 'import mmclca, mmengine; print(mmclca.__file__)'
    assert Path(run('-c', code).strip()).is_relative_to(python.parents[1])


@first
def test_command_fits_photos(run, python, tmp_path):
    record = sorted(python.parents[1].glob('lib/*/*/mmclca-*/RECORD'))[0]
    names = [line.split(',')[0] for line in record.read_text().splitlines()]
    command = python.with_name('mmclca')
    assert f'../../../bin/{command.name}' in names
    assert names[0].startswith('+mmclca/.mim/')  # mim uses the first path
    photos, weights = write_photos(tmp_path), write_weights(tmp_path)
    run(command, 'fit', photos, '--weights', weights, '--probe-only')
    named = run(command, 'predict', 'model', photos / 'ash')
    assert named.count('ash') >= 4
    assert (tmp_path / 'model/report.html').exists()


def test_mim_trains_and_tests(mim, tmp_path):
    config = write_run(tmp_path)
    work, tiny = tmp_path / 'work', ('mmclca', config)
    mim('train', *tiny, '--gpus', 0, '--work-dir', work)
    checkpoint = work / 'epoch_2.pth'
    assert checkpoint.exists()
    tested = mim('test', *tiny, '--gpus', 0, '--checkpoint', checkpoint)
    assert 'accuracy/top1' in tested


def test_mim_runs_tool_on_config_in_wheel(mim, python):
    (packages,) = python.parents[1].glob('lib/python*/site-packages')
    (config,) = packages.glob('mmclca/.mim/configs/clca/clca-*_leaf40-*.py')
    lines = mim('run', 'mmclca', 'get_flops', config, '--json').splitlines()
    (answer,) = [line for line in lines if line.startswith('{')]
    assert json.loads(answer)['flops'] > 1e8


def test_mim_trains_config_by_name(mim, sources, tmp_path):
    (path,) = sources.glob('configs/clca/clca-*_synthetic-leaves-*.py')
    config = path.name
    leaves = tmp_path / 'data' / 'synthetic_leaves'
    small = ('--classes', 8, '--per-class', 12, '--size', 64)
    mim('run', 'mmclca', 'synthetic_leaves', leaves, *small)
    short = ('--cfg-options', 'train_cfg.max_epochs=1')
    printed = mim('train', 'mmclca', config, '--gpus', 0, *short)
    assert f'+mmclca/.mim/configs/clca/{config}' in printed
    assert (tmp_path / 'work_dirs' / path.stem).is_dir()


def test_mim_search_lists_the_models(mim, sources):
    index = yaml.safe_load((sources / 'model-index.yml').read_text())
    models = [
        model['Name']
        for metafile in index['Import']
        for model in yaml.safe_load((sources / metafile).read_text())['Models']
    ]
    printed = mim('search', 'mmclca')
    assert models
    for model in models:
        assert f'config id: {model}\n' in printed
    fields = ('--field', 'flops', 'parameters', 'training_data')
    printed = mim('search', 'mmclca', *fields)
    assert printed.count('training_data') == len(models)
    assert 'flops' in printed and 'parameters' in printed
