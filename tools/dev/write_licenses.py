# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write docs/licenses.md: licenses of the installed runtime dependencies.

Rows of other packages in requirements/locked.txt are kept: other systems and
versions of Python need them.
"""

import re
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from marked_text import write_between
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs/licenses.md'
BEGIN = '<!-- table: write_licenses.py -->\n'
END = '<!-- end of table -->'
TITLES = ('package', 'version', 'license', 'libraries in the wheel')
ROOT_EXTRAS = 'mmclca', ('all', 'onedl')
# markers are evaluated for all of them
SYSTEMS = [
    dict(python_version=f'3.{n}', python_full_version=f'3.{n}.9', **system)
    for n in range(10, 15)
    for system in (
        dict(sys_platform='linux', platform_system='Linux'),
        dict(sys_platform='darwin', platform_system='Darwin'),
    )
]
# license files say more than the metadata
KNOWN = {
    'cuda-toolkit': 'LicenseRef-NVIDIA-Proprietary',
    'odfpy': 'Apache-2.0 OR GPL-2.0-or-later OR LGPL-2.1-or-later',
    'onedl-mmengine': 'Apache-2.0',
}
NAMES = {
    'Apache Software License': 'Apache-2.0',
    'BSD License': 'BSD',
    'ISC License (ISCL)': 'ISC',
    'MIT License': 'MIT',
    'Mozilla Public License 2.0 (MPL 2.0)': 'MPL-2.0',
    'Other/Proprietary License': 'LicenseRef-Proprietary',
    'Python Software Foundation License': 'PSF-2.0',
}
# libraries under the LGPL, or under the GPL with an exception for such use
LIBRARIES = {
    r'\.libs/libavcodec': 'FFmpeg (LGPL-2.1)',
    r'\.libs/libQt': 'Qt (LGPL-3.0)',
    r'libheif': 'libheif (LGPL-3.0)',
    r'libde265': 'libde265 (LGPL-3.0)',
    r'libgfortran': 'libgfortran (GPL-3.0 with GCC exception)',
}


def runtime() -> dict[str, Distribution]:
    """Return the installed packages that mmclca and its extras need."""
    todo, seen, licenses = [ROOT_EXTRAS], set(), {}
    while todo:
        name, extras = todo.pop()
        package = _installed(name)
        if (name, extras) in seen or package is None:
            continue
        seen.add((name, extras))
        licenses[name] = package
        todo += _needs(package, extras)
    skipped = ('mmclca', 'pip')  # any pip will do
    return {k: licenses[k] for k in sorted(licenses) if k not in skipped}


@cache
def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _needs(package: Distribution, extras: tuple[str, ...]):
    for requirement in map(Requirement, package.requires or ()):
        places = [dict(x, extra=e) for x in SYSTEMS for e in ('', *extras)]
        if requirement.marker is None or any(
            map(requirement.marker.evaluate, places)
        ):
            yield (
                canonicalize_name(requirement.name),
                tuple(sorted(requirement.extras)),
            )


def get_license(name: str, package: Distribution) -> str:
    """Return the license of a package, as an expression if it has one."""
    about = package.metadata
    kinds = [x.split(' :: ') for x in about.get_all('Classifier', ())]
    named = [x[-1] for x in kinds if x[0] == 'License']
    license_name = (about.get('License') or '').strip()
    return (
        KNOWN.get(name)
        or about.get('License-Expression')
        or ' OR '.join(NAMES.get(x, x) for x in named)
        or (license_name if '\n' not in license_name else '')
        or 'unknown'
    )


def libraries(package: Distribution) -> str:
    """List the bundled libraries with another license."""
    files = '\n'.join(map(str, package.files or ()))
    return ', '.join(v for k, v in LIBRARIES.items() if re.search(k, files))


def rows() -> dict[str, list[str]]:
    """Return the cells of each installed package."""
    return {
        name: [
            name,
            Version(package.version).public,
            get_license(name, package),
            libraries(package),
        ]
        for name, package in runtime().items()
    }


def written() -> dict[str, list[str]]:
    """Return the cells of each package in the page."""
    table = PAGE.read_text('utf-8').partition(BEGIN)[2].partition(END)[0]
    lines = [line.strip('| ').split('|') for line in table.splitlines()]
    cells = [[cell.strip() for cell in line] for line in lines[3:]]
    return {row[0]: (row + [''])[:4] for row in cells if row[0]}


def main() -> None:
    """Replace the table of the page."""
    locked = (ROOT / 'requirements/locked.txt').read_text('utf-8')
    names = set(re.findall(r'(?m)^([a-z][\w.-]*)==', locked))
    kept = {k: v for k, v in written().items() if k in names}
    licenses = dict(sorted((kept | rows()).items()))
    lines = [TITLES, ['---'] * len(TITLES), *licenses.values()]
    table = '\n'.join(f'| {" | ".join(line)} |' for line in lines)
    write_between(PAGE, BEGIN, END, f'\n{table}\n\n')


if __name__ == '__main__':
    main()
