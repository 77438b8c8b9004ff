# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The wheel's second half: what ``mim`` and browsers run.

All else: pyproject.toml.
"""

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


setup(cmdclass=dict(build_py=BuildPy))
