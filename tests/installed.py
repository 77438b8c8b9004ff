# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Skip tests by the installed versions."""

from importlib.metadata import version

import pytest
from packaging.version import Version


def is_installed(package, oldest):
    """Return whether a package has at least a version."""
    return Version(version(package)) >= Version(oldest)


def needs(package, oldest):
    """Skip a test if a package is older than a version."""
    return pytest.mark.skipif(
        not is_installed(package, oldest), reason=f'needs {package} {oldest}'
    )
