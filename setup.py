# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parts of the wheel that pyproject.toml cannot describe.

Files for ``mim`` and browsers, and the README with absolute links.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
FOLDERS = ('configs', 'tools')
INDEXES = ('dataset-index.yml', 'model-index.yml')

# mim reads PACKAGE/.mim, and onedl-mim 0.5.1 takes the folder of the first
# path in the installed (sorted) RECORD for PACKAGE: that would be
# ../../../bin, of the command mmclca, were there no +mmclca.
MIM_HOMES = ('mmclca/.mim', '+mmclca/.mim')
WEB_RUNTIME = 'mmclca/deployment/web/runtime'


def fill(home):
    """Put tools, configs and the indexes into a new folder ``home``."""
    shutil.rmtree(home, ignore_errors=True)  # what an earlier build left
    ignore = shutil.ignore_patterns('__pycache__', '*.pyc', 'dev', 'research')
    for name in FOLDERS:
        shutil.copytree(ROOT / name, home / name, ignore=ignore)
    for name in INDEXES:
        shutil.copy2(ROOT / name, home / name)


class BuildPy(build_py):
    """Adds the homes of mim and the runtime of web apps to a wheel."""

    def run(self):
        super().run()
        if not self.editable_mode:
            for home in MIM_HOMES:
                fill(Path(self.build_lib, home))
            # without npm or a network, the wheel is built without it
            fetch = ROOT / 'tools/dev/fetch_web_runtime.py'
            folder = Path(self.build_lib, WEB_RUNTIME)
            subprocess.run([sys.executable, fetch, folder])


def read_readme():
    """Return the README; if the address is known, with links to it."""
    readme = (ROOT / 'README.md').read_text('utf-8')
    project = (ROOT / 'pyproject.toml').read_text('utf-8')
    address = re.search(r'^Repository = "(.+?)/?"$', project, re.M)
    if address is None:
        return readme
    pictures = re.compile(r'src="(?!https?:)')
    links = re.compile(r'\]\((?!https?:|#)')
    readme = pictures.sub(f'src="{address[1]}/raw/main/', readme)
    return links.sub(f']({address[1]}/blob/main/', readme)


setup(
    cmdclass=dict(build_py=BuildPy),
    long_description=read_readme(),
    long_description_content_type='text/markdown',
)
