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
EXTRAS = 'fit', 'openmmlab'
CONDA_NAMES = {
    'matplotlib': 'matplotlib-base',
    'mmcv-lite': 'mmcv',
    'torch': 'pytorch',
}
# upstream, which conda-forge has instead of the forks
OPENMMLAB = {
    'mmcv': '>=2.1,<2.4',
    'mmengine': '>=0.10.7,<0.11',
    'mmpretrain': '>=1.2,<1.4',
}


def list_requirements() -> list[str]:
    """Return the requirements for conda-forge, sorted."""
    project = load_file(ROOT / 'pyproject.toml')['project']
    extras = project['optional-dependencies']
    names, lines = [*EXTRAS], [*project['dependencies']]
    needed = OPENMMLAB | {'python': '>=${{ python_min }}'}
    while names:
        lines += extras.get(names.pop(), [])
        inner = [x for x in map(Requirement, lines) if x.name == 'mmclca']
        names += [name for x in inner for name in x.extras]
        lines = [x for x in lines if Requirement(x).name != 'mmclca']
    for requirement in map(Requirement, lines):
        if not requirement.name.startswith('onedl-'):
            name = CONDA_NAMES.get(requirement.name, requirement.name)
            bounds = sorted(map(str, requirement.specifier), reverse=True)
            needed[name] = ','.join(bounds)  # lower bound first
    return sorted(f'{name} {bounds}' for name, bounds in needed.items())


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
