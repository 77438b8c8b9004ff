# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import re
import sys
from importlib import metadata

import pytest
from packaging.specifiers import SpecifierSet
from tiny_run import ROOT, run_python

import mmclca
from mmclca import dependencies
from mmclca.dependencies import MODULES, check_dependencies

EVERYTHING = """
import importlib, pkgutil, sys
import mmclca
for module in pkgutil.walk_packages(mmclca.__path__, 'mmclca.'):
    importlib.import_module(module.name)
print([name for name in sys.modules if name.startswith('mmcv.ops')])
"""


def write_module(folder, name, version):
    (folder / name).mkdir()
    (folder / name / '__init__.py').touch()
    (folder / name / 'version.py').write_text(f'__version__ = {version!r}\n')


@pytest.fixture
def distributions(monkeypatch):
    """A set of names; those are the installed distributions."""
    names = {module.install.partition('>=')[0] for module in MODULES.values()}
    monkeypatch.setattr(dependencies, 'is_installed', names.__contains__)
    return names


def test_import_is_quiet_and_light(tmp_path):
    code = 'import sys, mmclca; assert "torch" not in sys.modules'
    run = run_python('-W', 'default', '-c', code, cwd=tmp_path)
    assert (run.stdout, run.stderr) == ('', '')


@pytest.mark.slow
def test_everything_imports_quietly_without_compiled_ops(tmp_path):
    run = run_python('-c', EVERYTHING, cwd=tmp_path)
    # mmpretrain.datasets itself prints that it does without OneDL
    printed = run.stdout.replace('Could not import OneDL\n', '')
    assert (printed, run.stderr) == ('[]\n', '')


def test_version_is_stated_alike():
    changelog = (ROOT / 'CHANGELOG.md').read_text()
    citation = (ROOT / 'CITATION.cff').read_text()
    assert f'version: {mmclca.__version__}\n' in citation
    assert re.search(
        rf'## \[({re.escape(mmclca.__version__)}|Unreleased)\]', changelog
    )


def test_what_is_installed_here_passes(recwarn):
    check_dependencies()
    assert not [str(w.message) for w in recwarn]


def test_modules_are_those_that_pip_installs():
    declared = (ROOT / 'pyproject.toml').read_text()
    for name, module in MODULES.items():
        assert f'"{module.install}"' in declared
        lowest = re.search(r'>=([\d.]+)', module.install)[1]
        assert SpecifierSet(module.versions).contains(lowest), name


@pytest.mark.parametrize('version', ['0.7.0', '0.11.0', '1.0.0'])
def test_wrong_version_is_refused(version, tmp_path, monkeypatch):
    write_module(tmp_path, 'mmengine', version)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, 'mmengine', raising=False)
    message = f'mmengine {version} is installed, >=0.10.7,<0.11 is needed'
    with pytest.raises(ImportError, match=message) as error:
        check_dependencies()
    assert "pip install 'onedl-mmengine>=0.10.12,<0.11'" in str(error.value)


@pytest.mark.parametrize('version', ['0.10.7', '0.10.12', '0.10.99rc1'])
def test_version_of_the_module_counts(version, tmp_path, monkeypatch):
    write_module(tmp_path, 'mmengine', version)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, 'mmengine', raising=False)
    check_dependencies()


def test_all_that_is_missing_is_named_at_once(monkeypatch):
    present = dependencies.origin
    missing = ('mmcv', 'timm')
    monkeypatch.setattr(
        dependencies,
        'origin',
        lambda name: None if name in missing else present(name),
    )
    with pytest.raises(ImportError) as error:
        check_dependencies()
    message = str(error.value)
    assert 'mmcv is not installed; timm is not installed.' in message
    assert (
        "  pip install 'onedl-mmcv>=2.3.6,<2.4' 'timm>=1.0.24,<2'" in message
    )
    assert 'mmpretrain' not in message


def test_half_removed_module_is_refused(tmp_path, monkeypatch):
    write_module(tmp_path, 'mmcv', '')
    (tmp_path / 'mmcv' / 'version.py').write_text(
        'from importlib.metadata import version\n'
        "__version__ = version('mmcv-of-nobody')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, 'mmcv', raising=False)
    with pytest.raises(ImportError, match='mmcv has no version'):
        check_dependencies()


@pytest.mark.parametrize(
    'module, other',
    [
        ('mmengine', 'mmengine'),
        ('mmengine', 'mmengine-lite'),
        ('mmcv', 'mmcv-lite'),
        ('mmpretrain', 'mmpretrain'),
    ],
)
def test_overlaid_installations_warn(module, other, distributions):
    distributions.add(other)
    with pytest.warns(UserWarning) as warned:
        check_dependencies()
    (warning,) = warned
    message = str(warning.message)
    assert f'onedl-{module} and {other} are installed over' in message
    assert f'pip uninstall -y onedl-{module} {other}\n' in message
    assert f"pip install '{MODULES[module].install}'" in message


def test_upstream_alone_does_not_warn(distributions, recwarn):
    distributions.clear()
    distributions.update(['mmengine', 'mmcv', 'mmpretrain'])
    check_dependencies()
    assert not recwarn.list


def test_distributions_are_told_apart():
    assert dependencies.is_installed('pytest')
    assert not dependencies.is_installed('mmclca-of-nobody')
    assert metadata.version('pytest') == pytest.__version__
