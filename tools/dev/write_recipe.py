# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write version, requirements and checksum into recipe/recipe.yaml.

``python tools/dev/write_recipe.py [SDIST]``: the requirements are those of
pyproject.toml under the names of conda-forge, which has the upstream packages
of OpenMMLab instead of the forks; the checksum is that of ``SDIST``.
"""

import hashlib
import re
import sys
from pathlib import Path

from marked_text import write_between
from packaging.requirements import Requirement
from setuptools.config.pyprojecttoml import load_file

from mmclca.utils.files import replace_text
from mmclca.version import __version__

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / 'recipe/recipe.yaml'
BEGIN = '  # begin requirements\n'
END = '  # end requirements'
# with the commands of users; conda packages have no extras
EXTRAS = ('fit', 'openmmlab', 'pictures')
CONDA_NAMES = {
    'matplotlib': 'matplotlib-base',
    'mmcv-lite': 'mmcv',
    'opencv-python': 'py-opencv',
    'torch': 'pytorch',
}


def list_requirements() -> list[str]:
    """Return the requirements for conda-forge, sorted."""
    project = load_file(ROOT / 'pyproject.toml')['project']
    lines = [*project['dependencies']]
    for extra in EXTRAS:
        lines += project['optional-dependencies'][extra]
    needed = {'python': '>=${{ python_min }}'}
    for requirement in map(Requirement, lines):
        if requirement.name != 'mmclca':  # combines other extras
            name = CONDA_NAMES.get(requirement.name, requirement.name)
            bounds = sorted(map(str, requirement.specifier), reverse=True)
            needed[name] = ','.join(bounds)  # lower bound first
    return sorted(
        f'{name} {bounds}'.strip() for name, bounds in needed.items()
    )


def main(sdist: Path | None = None) -> None:
    """Write the recipe."""
    rows = [f'    - {line}\n' for line in list_requirements()]
    write_between(RECIPE, BEGIN, END, ''.join(['  run:\n', *rows]))
    content = RECIPE.read_text('utf-8')
    content = re.sub(
        r'(?m)^  version: ".*"$', f'  version: "{__version__}"', content
    )
    if sdist is not None:
        digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
        content = re.sub(
            r'(?m)^  sha256: .*$', f'  sha256: "{digest}"', content
        )
    replace_text(RECIPE, content)


if __name__ == '__main__':
    main(*map(Path, sys.argv[1:]))
