# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What every run of mmengine takes seconds for, and no test looks at."""

import functools
import itertools
import time
from types import SimpleNamespace

from yapf.yapflib import yapf_api


def make_quick(patch):
    """Leave it out, or do it once.

    Args:
        patch (pytest.MonkeyPatch): Undoes it.
    """
    # asks compilers for their versions
    patch.setattr('mmengine.runner.runner.collect_env', dict)
    # formats the same config for the log, a file and each checkpoint
    patch.setattr(yapf_api, 'FormatCode', _once(yapf_api.FormatCode))
    # names logs by the second
    patch.setattr('mmengine.runner.runner.time', _clock())


def _once(format_code):
    @functools.lru_cache(64)
    def formatted(text, style):
        return format_code(text, style_config=dict(style))

    def once(text, style_config):
        return formatted(text, tuple(style_config.items()))

    return once


def _clock():
    """The module ``time``, another second whenever it is looked at."""
    seconds = itertools.count(int(time.time()))
    return SimpleNamespace(
        time=lambda: float(next(seconds)),
        strftime=time.strftime,
        localtime=time.localtime,
    )
