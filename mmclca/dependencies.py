# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check the versions of required packages when mmclca is imported.

The versions come from the metadata of the distributions, without importing
the packages.
"""

from importlib.metadata import PackageNotFoundError, version

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

# supported versions of a module, requirement to install, and distributions
# with the same module
MODULES = {
    'mmengine': (
        '>=0.10.7,<0.11',
        'onedl-mmengine>=0.10.12,<0.11',
        'mmengine',
        'mmengine-lite',
    ),
    'mmcv': (
        '>=2.1,<2.4',
        'onedl-mmcv>=2.3.6,<2.4',
        'mmcv',
        'mmcv-lite',
        'mmcv-full',
    ),
    'mmpretrain': ('>=1.2,<1.4', 'onedl-mmpretrain>=1.3.6,<1.4', 'mmpretrain'),
    'torch': ('>=2.12', 'torch>=2.12,<2.16'),
    'torchvision': ('', 'torchvision>=0.27,<0.30'),
    'timm': ('>=1.0.24,<2', 'timm>=1.0.24,<2'),
}


def installed_version(distribution: str) -> str | None:
    """Return the version of a distribution, None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _problem(name: str, versions: str, found: dict[str, str]) -> str:
    """Describe the problem of a module; empty without one."""
    if not found:
        return f'{name} is not installed'
    for one in found.values():
        if not SpecifierSet(versions).contains(one, prereleases=True):
            return f'{name} {one} is installed, {versions} is needed'
    return ''


def check_dependencies() -> None:
    """Raise if packages are missing or have unsupported versions.

    Raises:
        ImportError: Names all problems and the pip commands to fix them.
    """
    problems, old, new = [], [], []
    for name, (versions, install, *others) in MODULES.items():
        names = (Requirement(install).name, *others)
        held = {n: v for n in names if (v := installed_version(n))}
        problem = _problem(name, versions, held)
        if problem:
            problems.append(problem)
            old += held
            new.append(install)
    if len(new) == len(MODULES) and not old:
        raise ImportError(
            'None of the required packages is installed: activate the '
            'environment (source .venv/bin/activate), or install them:\n'
            f'{_remedy(old, new)}'
        )
    if problems:
        raise ImportError(
            f'mmclca cannot run: {"; ".join(problems)}. To fix it:\n'
            f'{_remedy(old, new)}'
        )


def _remedy(old, new) -> str:
    """Return the pip commands to fix the problems."""
    uninstall = f'  pip uninstall -y {" ".join(old)}\n' if old else ''
    return uninstall + '  pip install ' + ' '.join(f"'{n}'" for n in new)
