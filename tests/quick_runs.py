# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Start runs of mmengine in less time, for tests of training and testing."""

import functools
import itertools
import os
import time
from types import SimpleNamespace

from yapf.yapflib import yapf_api

# never repeats in a process, and starts elsewhere in each process
SECONDS = itertools.count(int(time.time()) + 1000 * (os.getpid() % 10_000))


def make_quick(patch):
    """Speed up the start of a ``Runner``, with a ``MonkeyPatch``."""
    # a run formats the same config for its log, a file and each checkpoint
    patch.setattr(yapf_api, 'FormatCode', _cached(yapf_api.FormatCode))
    # runs started in the same second would share their log folder
    patch.setattr('mmengine.runner.runner.time', _clock())


def _cached(format_code):
    @functools.lru_cache(64)
    def formatted(text, style):
        return format_code(text, style_config=dict(style))

    def cached(text, style_config):
        return formatted(text, tuple(style_config.items()))

    return cached


def _clock():
    """Return a module ``time`` with another second at each call."""
    return SimpleNamespace(
        time=lambda: float(next(SECONDS)),
        strftime=time.strftime,
        localtime=time.localtime,
    )
