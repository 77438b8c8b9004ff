# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import re
import sys

import pytest
from installed import NEEDS_GRADIO
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from tiny_run import ROOT, run_python

import mmclca
from mmclca import dependencies
from mmclca.dependencies import MODULES, check_dependencies

if sys.version_info >= (3, 11):
    import tomllib

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
    versions = {}
    for module in MODULES:
        preferred = Requirement(module.distributions[0].requirement)
        (lowest,) = (
            bound.version
            for bound in preferred.specifier
            if bound.operator == '>='
        )
        versions[preferred.name] = lowest
    monkeypatch.setattr(dependencies, 'find_version', versions.get)
    return versions


@pytest.fixture
def upstream(installed):
    """Installed versions with upstream packages."""
    for name in [name for name in installed if name.startswith('onedl-')]:
        del installed[name]
    installed |= dict(mmengine='0.10.7', mmcv='2.2.0', mmpretrain='1.2.0')
    return installed


def test_import_is_quiet_and_light(tmp_path):
    # photos are checked before torch, whose import takes seconds
    code = 'import sys, mmclca.datasets.photos, mmclca.cli.commands.fit\n'
    code += 'assert "torch" not in sys.modules'
    run = run_python('-W', 'default', '-c', code, cwd=tmp_path)
    assert (run.stdout, run.stderr) == ('', '')


@NEEDS_GRADIO
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


def read_declared():
    """Return the versions in pyproject.toml, by distribution."""
    project = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']
    extras = project['optional-dependencies']
    requirements = map(
        Requirement,
        project['dependencies'] + extras['onedl'] + extras['openmmlab'],
    )
    return {x.name: x.specifier for x in requirements}


@pytest.mark.skipif(sys.version_info < (3, 11), reason='needs tomllib')
def test_checked_versions_equal_the_declared_ones():
    checked = {
        distribution.name: SpecifierSet(distribution.versions)
        for module in MODULES
        for distribution in module.distributions
    }
    declared = read_declared()
    assert declared.items() <= checked.items()
    # further upstream distributions
    variants = checked.keys() - declared.keys()
    assert variants == {'mmengine-lite', 'mmcv', 'mmcv-full'}
    for name in variants:
        module = name.partition('-')[0]
        assert checked[name] in (declared.get(module), checked['mmcv-lite'])


@pytest.mark.parametrize('version', ['0.7.0', '0.10.8', '0.11.0', '1.0.0'])
def test_wrong_version_is_refused(version, installed):
    installed['onedl-mmengine'] = version
    message = (
        f'onedl-mmengine {version} is installed, >=0.10.12,<0.11 is needed'
    )
    with pytest.raises(ImportError, match=message) as error:
        check_dependencies()
    assert 'uninstall' not in str(error.value)
    assert "pip install 'onedl-mmengine>=0.10.12,<0.11'" in str(error.value)


REFUSED = [
    ('torch', '2.3.1', '>=2.4,<2.16'),
    ('torch', '2.16.0', '>=2.4,<2.16'),
    ('timm', '0.9.16', '>=1.0.11,<2'),
    ('onedl-mmpretrain', '1.4.0', '>=1.3.6,<1.4'),
    ('onedl-mmengine', '0.9.0', '>=0.10.12,<0.11'),
    ('mmpretrain', '1.1.0', '>=1.2,<1.3'),
    ('mmengine', '0.9.0', '>=0.10.7,<0.11'),
]


@pytest.mark.parametrize('name, version, needed', REFUSED)
def test_message_names_version_and_remedy_if_refused(
    name, version, needed, request
):
    forks = name.startswith('onedl-') or not name.startswith('mm')
    versions = request.getfixturevalue('installed' if forks else 'upstream')
    versions[name] = version
    with pytest.raises(ImportError) as error:
        check_dependencies()
    problem, remedy = str(error.value).splitlines()
    assert f'{name} {version} is installed, {needed} is needed' in problem
    assert remedy == f"  pip install '{name}{needed}'"


@pytest.mark.parametrize('name, version, needed', [REFUSED[0], REFUSED[2]])
def test_import_ends_before_other_packages_if_refused(
    name, version, needed, tmp_path
):
    info = tmp_path / f'{name}-{version}.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text(
        f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n'
    )
    code = (
        'import sys\n'
        f'sys.path.insert(0, {str(tmp_path)!r})\n'
        'try:\n    import mmclca\n'
        'except ImportError as error:\n    print(error)\n'
        'print({"torch", "timm", "mmengine"} & {*sys.modules})'
    )
    run = run_python('-c', code, cwd=tmp_path)
    problem, remedy, loaded = run.stdout.splitlines()
    assert f'{name} {version} is installed' in problem
    assert f"pip install '{name}{needed}'" in remedy
    assert loaded == 'set()'


def test_error_lists_all_missing_packages(installed):
    del installed['onedl-mmcv'], installed['timm']
    with pytest.raises(ImportError) as error:
        check_dependencies()
    message = str(error.value)
    assert 'onedl-mmcv is not installed; timm is not installed.' in message
    assert (
        "  pip install 'onedl-mmcv>=2.3.6,<2.4' 'timm>=1.0.11,<2'" in message
    )
    assert 'mmpretrain' not in message


def test_error_names_the_environment_if_nothing_is_installed(installed):
    installed.clear()
    with pytest.raises(ImportError, match='activate') as error:
        check_dependencies()
    assert 'pip install' in str(error.value)


def test_upstream_alone_does_not_warn(upstream, recwarn):
    upstream['mmengine'] = '0.10.99rc1'
    check_dependencies()
    assert not recwarn.list


def test_upstream_package_is_completed_by_upstream(upstream):
    del upstream['mmcv']
    with pytest.raises(ImportError) as error:
        check_dependencies()
    assert "  pip install 'mmcv-lite>=2.1,<2.3'" in str(error.value)


def test_overwritten_files_are_replaced(upstream):
    upstream['mmcv-lite'] = '2.0.1'
    with pytest.raises(ImportError, match=r'mmcv-lite 2\.0\.1') as error:
        check_dependencies()
    assert 'pip uninstall -y mmcv-lite mmcv\n' in str(error.value)
    assert "pip install 'mmcv-lite>=2.1,<2.3'" in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize('package', ['models', 'datasets', 'fitting'])
def test_import_prints_nothing(package):
    code = f'import mmclca.{package}; from mmengine.logging import logger'
    code += '; assert "print" not in vars(logger)'
    assert run_python('-W', 'ignore', '-c', code, cwd=ROOT).stdout == ''
