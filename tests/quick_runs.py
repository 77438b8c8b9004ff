# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Start runs of mmengine in less time, for tests of training and testing."""

import functools
import itertools
import time
from types import SimpleNamespace

from yapf.yapflib import yapf_api

RUNNER = 'mmengine.runner.runner'


def make_quick(patch):
    """Skip or cache slow steps at the start of a ``Runner``.

    ``patch`` is a ``MonkeyPatch`` that restores them.
    """
    patch.setattr(f'{RUNNER}.collect_env', dict)  # runs compilers
    # a run formats the same config for its log, a file and each checkpoint
    patch.setattr(yapf_api, 'FormatCode', _cached(yapf_api.FormatCode))
    # runs started in the same second would share their log folder
    patch.setattr(f'{RUNNER}.time', _clock())


def _cached(format_code):
    @functools.lru_cache(64)
    def formatted(text, style):
        return format_code(text, style_config=dict(style))

    def cached(text, style_config):
        return formatted(text, tuple(style_config.items()))

    return cached


def _clock():
    """Return a module ``time`` with another second at each call."""
    seconds = itertools.count(int(time.time()))
    return SimpleNamespace(
        time=lambda: float(next(seconds)),
        strftime=time.strftime,
        localtime=time.localtime,
    )
