# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Skip tests by the installed versions."""

from importlib.metadata import version
from importlib.util import find_spec

import pytest
from packaging.version import Version

from mmclca.utils.torch_versions import COMPILES


def is_installed(package, oldest):
    """Return whether a package has at least a version."""
    return Version(version(package)) >= Version(oldest)


def needs(package, oldest):
    """Skip a test if a package is older than a version."""
    return pytest.mark.skipif(
        not is_installed(package, oldest), reason=f'needs {package} {oldest}'
    )


HAS_GRADIO = find_spec('gradio') is not None
# torch.compile and torch.export; what is refused without them:
# test_deployment/test_versions.py
NEEDS_COMPILER = needs('torch', COMPILES)
NEEDS_GRADIO = pytest.mark.skipif(
    not HAS_GRADIO, reason='needs gradio: extra demo'
)
