# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import re

import pytest
from packaging.requirements import Requirement
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


@pytest.fixture
def installed(monkeypatch):
    """Installed versions by distribution, for tests to change."""
    texts = (install for _, install, *_ in MODULES.values())
    found = {}
    for requirement in map(Requirement, texts):
        (lowest,) = (
            one.version
            for one in requirement.specifier
            if one.operator == '>='
        )
        found[requirement.name] = lowest
    monkeypatch.setattr(dependencies, 'installed_version', found.get)
    return found


def test_import_is_quiet_and_light(tmp_path):
    code = 'import sys, mmclca; assert "torch" not in sys.modules'
    run = run_python('-W', 'default', '-c', code, cwd=tmp_path)
    assert (run.stdout, run.stderr) == ('', '')


@pytest.mark.slow
def test_everything_imports_quietly_without_compiled_ops(tmp_path):
    # mmcv warns that its operators are not compiled
    quiet = '-W', 'ignore:Fail to import'
    run = run_python(*quiet, '-c', EVERYTHING, cwd=tmp_path)
    assert (run.stdout, run.stderr) == ('[]\n', '')


def test_version_is_stated_alike():
    changelog = (ROOT / 'CHANGELOG.md').read_text()
    citation = (ROOT / 'CITATION.cff').read_text()
    assert f'version: {mmclca.__version__}\n' in citation
    assert re.search(
        rf'## \[({re.escape(mmclca.__version__)}|Unreleased)\]', changelog
    )


def test_installed_versions_pass(recwarn):
    check_dependencies()
    assert not [str(w.message) for w in recwarn]


def test_modules_equal_declared_dependencies():
    declared = (ROOT / 'pyproject.toml').read_text()
    for _, install, *_ in MODULES.values():
        assert f'"{install}"' in declared


@pytest.mark.parametrize('version', ['0.7.0', '0.11.0', '1.0.0'])
def test_wrong_version_is_refused(version, installed):
    installed['onedl-mmengine'] = version
    message = f'mmengine {version} is installed, >=0.10.7,<0.11 is needed'
    with pytest.raises(ImportError, match=message) as error:
        check_dependencies()
    assert 'pip uninstall -y onedl-mmengine\n' in str(error.value)
    assert "pip install 'onedl-mmengine>=0.10.12,<0.11'" in str(error.value)


def test_error_lists_all_missing_packages(installed):
    del installed['onedl-mmcv'], installed['timm']
    with pytest.raises(ImportError) as error:
        check_dependencies()
    message = str(error.value)
    assert 'mmcv is not installed; timm is not installed.' in message
    assert (
        "  pip install 'onedl-mmcv>=2.3.6,<2.4' 'timm>=1.0.24,<2'" in message
    )
    assert 'mmpretrain' not in message


def test_error_names_the_environment_if_nothing_is_installed(installed):
    installed.clear()
    with pytest.raises(ImportError, match='activate') as error:
        check_dependencies()
    assert 'pip install' in str(error.value)


def test_upstream_alone_does_not_warn(installed, recwarn):
    for name in ('mmengine', 'mmcv', 'mmpretrain'):
        installed[name] = installed.pop(f'onedl-{name}')
    installed['mmengine'] = '0.10.99rc1'
    check_dependencies()
    assert not recwarn.list


@pytest.mark.slow
@pytest.mark.parametrize('package', ['models', 'datasets', 'fitting'])
def test_import_prints_nothing(package):
    code = f'import mmclca.{package}; from mmengine.logging import logger'
    code += '; assert "print" not in vars(logger)'
    assert run_python('-W', 'ignore', '-c', code, cwd=ROOT).stdout == ''
