# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check the versions of required packages when mmclca is imported.

The versions come from the metadata of the distributions, without importing
the packages.
"""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version


@dataclass(frozen=True)
class Distribution:
    """A distribution for pip, and the versions of it that mmclca supports.

    Args:
        name (str): Name for pip.
        versions (str): Supported versions, such as '>=2.1,<2.3'.
    """

    name: str
    versions: str

    @property
    def requirement(self) -> str:
        """Argument of ``pip install``."""
        return self.name + self.versions


@dataclass(frozen=True)
class Module:
    """A module that mmclca imports, and who distributes it.

    Args:
        name (str): Name to import.
        distributions (tuple[Distribution]): Each provides the module; the
            first is the one to install.
    """

    name: str
    distributions: tuple[Distribution, ...]


def _module(name: str, *requirements: tuple[str, str]) -> Module:
    return Module(name, tuple(Distribution(*x) for x in requirements))


# pyproject.toml states the same versions, those of OpenMMLab in the extras
# onedl (the maintained forks) and openmmlab (upstream)
MODULES = (
    _module(
        'mmengine',
        ('onedl-mmengine', '>=0.10.12,<0.11'),
        ('mmengine', '>=0.10.7,<0.11'),
        ('mmengine-lite', '>=0.10.7,<0.11'),
    ),
    _module(
        'mmcv',
        ('onedl-mmcv', '>=2.3.6,<2.4'),
        ('mmcv-lite', '>=2.1,<2.3'),
        ('mmcv', '>=2.1,<2.3'),
        ('mmcv-full', '>=2.1,<2.3'),
    ),
    _module(
        'mmpretrain',
        ('onedl-mmpretrain', '>=1.3.6,<1.4'),
        ('mmpretrain', '>=1.2,<1.3'),
    ),
    _module('torch', ('torch', '>=2.4,<2.16')),
    _module('torchvision', ('torchvision', '>=0.19,<0.30')),
    _module('timm', ('timm', '>=1.0.11,<2')),
    _module('numpy', ('numpy', '>=1.26,<3')),
    _module('filelock', ('filelock', '>=3.12')),
    _module('huggingface_hub', ('huggingface_hub', '>=0.24,<3')),
    _module('packaging', ('packaging', '>=23.2')),
    _module('PIL', ('pillow', '>=10.1')),
    _module('safetensors', ('safetensors', '>=0.4.3,<1')),
)
FORKS = 'onedl-'


def find_version(distribution: str) -> str | None:
    """Return the version of a distribution, None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True)
class VersionProblem:
    """A module that is missing or cannot be used.

    Args:
        text (str): Description.
        install (Distribution): Distribution to install.
        uninstall (tuple[str]): Distributions to uninstall before that.
    """

    text: str
    install: Distribution
    uninstall: tuple[str, ...] = ()


def check_dependencies() -> None:
    """Raise if packages are missing or have unsupported versions.

    Raises:
        ImportError: Names all problems and the pip commands to fix them.
    """
    installed = {
        distribution.name: number
        for module in MODULES
        for distribution in module.distributions
        if (number := find_version(distribution.name)) is not None
    }
    problems = _find_problems(installed)
    if len(problems) == len(MODULES) and not installed:
        raise ImportError(
            'None of the required packages is installed: activate the '
            'environment (source .venv/bin/activate), or install them:\n'
            f'{_describe_remedy(problems)}'
        )
    if problems:
        texts = '; '.join(problem.text for problem in problems)
        raise ImportError(
            f'mmclca cannot run: {texts}. To fix it:\n'
            f'{_describe_remedy(problems)}'
        )


def _find_problems(installed: dict[str, str]) -> list[VersionProblem]:
    """Return the problems of installed versions, by distribution."""
    # upstream and the forks have the same files, and are not mixed
    with_forks = any(name.startswith(FORKS) for name in installed)
    with_upstream = not with_forks and any(
        distribution.name in installed
        for module in MODULES
        for distribution in module.distributions[1:]
    )
    problems = []
    for module in MODULES:
        present = [x for x in module.distributions if x.name in installed]
        if not present:
            preferred = next(
                x
                for x in module.distributions
                if not (with_upstream and x.name.startswith(FORKS))
            )
            text = f'{preferred.name} is not installed'
            problems.append(VersionProblem(text, preferred))
        wrong = [x for x in present if not _supports(x, installed[x.name])]
        for distribution in wrong[:1]:
            text = (
                f'{distribution.name} {installed[distribution.name]} is '
                f'installed, {distribution.versions} is needed'
            )
            # files of several distributions overwrite each other
            names = tuple(x.name for x in present) * (len(present) > 1)
            problems.append(VersionProblem(text, present[0], names))
    return problems


def _supports(distribution: Distribution, number: str) -> bool:
    """Return whether a version is supported."""
    # here, because it may be what is missing
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(distribution.versions).contains(
        number, prereleases=True
    )


def _describe_remedy(problems: list[VersionProblem]) -> str:
    """Return the pip commands to fix the problems."""
    names = [name for problem in problems for name in problem.uninstall]
    uninstall = f'  pip uninstall -y {" ".join(names)}\n' if names else ''
    requirements = [f"'{problem.install.requirement}'" for problem in problems]
    return f'{uninstall}  pip install {" ".join(requirements)}'
