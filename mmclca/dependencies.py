# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What mmclca needs beside it, checked at its import.

Nothing is imported for this: versions are read from each module's own
``version.py``, because a distribution's version says little once a second
one has been installed over it.
"""

import runpy
import warnings
from importlib import metadata, util
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet


class Module(NamedTuple):
    """A module that mmclca imports."""

    versions: str
    install: str
    others: tuple[str, ...] = ()


MODULES = {
    'mmengine': Module(
        '>=0.10.7,<0.11',
        'onedl-mmengine>=0.10.12,<0.11',
        others=('mmengine', 'mmengine-lite'),
    ),
    'mmcv': Module(
        '>=2.1,<2.4',
        'onedl-mmcv>=2.3.6,<2.4',
        others=('mmcv', 'mmcv-lite', 'mmcv-full'),
    ),
    'mmpretrain': Module(
        '>=1.2,<1.4', 'onedl-mmpretrain>=1.3.6,<1.4', others=('mmpretrain',)
    ),
    'torch': Module('>=2.12', 'torch>=2.12,<2.16'),
    # not checked: its version.py imports the package
    'torchvision': Module('', 'torchvision>=0.27,<0.30'),
    'timm': Module('>=1.0.24,<2', 'timm>=1.0.24,<2'),
}


def origin(name):
    """The path of a module's ``__init__.py``, None where there is none."""
    spec = util.find_spec(name)
    return spec and spec.origin


def installed_version(name):
    """The version in ``name/version.py``, None where it cannot be told."""
    path = Path(origin(name)).with_name('version.py')
    try:
        return runpy.run_path(str(path))['__version__']
    except (OSError, metadata.PackageNotFoundError):
        return None  # half removed: files of one, metadata of another


def problem_of(name, module):
    """What is wrong with a module, in words; empty where it is right."""
    if origin(name) is None:
        return f'{name} is not installed'
    if not module.versions:
        return ''
    version = installed_version(name)
    if version is None:
        return f'{name} has no version: its installation is broken'
    if not SpecifierSet(module.versions).contains(version, prereleases=True):
        return f'{name} {version} is installed, {module.versions} is needed'
    return ''


def is_installed(distribution):
    """Whether pip knows a distribution by this name."""
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def holders(module):
    """Names of the installed distributions that hold a module."""
    own = module.install.partition('>=')[0]
    return [name for name in (own, *module.others) if is_installed(name)]


def remedy(modules):
    """The commands that leave one good installation of each module."""
    old = ' '.join(name for module in modules for name in holders(module))
    new = ' '.join(f"'{module.install}'" for module in modules)
    uninstall = f'  pip uninstall -y {old}\n' if old else ''
    return f'{uninstall}  pip install {new}'


def check_dependencies():
    """Refuse what cannot work, warn of installations over each other.

    Raises:
        ImportError: If modules are missing or of a version that does not
            work. Names all of them and the commands that fix it.
    """
    problems = {name: problem_of(name, MODULES[name]) for name in MODULES}
    bad = [name for name in MODULES if problems[name]]
    if bad:
        raise ImportError(
            f'mmclca cannot run: {"; ".join(problems[name] for name in bad)}.'
            f' To fix it:\n{remedy([MODULES[name] for name in bad])}'
        )
    for name, module in MODULES.items():
        if len(found := holders(module)) > 1:
            warnings.warn(
                f'{" and ".join(found)} are installed over each other: all '
                f'hold the module {name!r}. To keep one:\n'
                f'{remedy([module])}',
                stacklevel=3,
            )
