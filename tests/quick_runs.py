# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What every run and every model takes time for, and no test looks at."""

import functools
import inspect
import itertools
import time
from types import SimpleNamespace

from torch.nn import Linear
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
    # reads the arguments of a function anew in each call of it
    patch.setattr(
        'mmengine.utils.misc.getfullargspec',
        functools.cache(inspect.getfullargspec),
    )
    # collects the garbage of all tests before it, of each data set
    no_collection = SimpleNamespace(collect=lambda: None)
    patch.setattr('mmengine.dataset.base_dataset.gc', no_collection)
    # exports each model that fit times: PyTorch is timed where none is named
    patch.setattr('mmclca.benchmark.timing.NEEDED', ('no_such_package',))
    # draws numbers where there are none, on the meta device, in Python
    patch.setattr(Linear, 'reset_parameters', _with_values_only())


def _once(format_code):
    @functools.lru_cache(64)
    def formatted(text, style):
        return format_code(text, style_config=dict(style))

    def once(text, style_config):
        return formatted(text, tuple(style_config.items()))

    return once


def _with_values_only(reset=Linear.reset_parameters):
    def reset_parameters(self):
        if not self.weight.is_meta:
            reset(self)

    return reset_parameters


def _clock():
    """The module ``time``, another second whenever it is looked at."""
    seconds = itertools.count(int(time.time()))
    return SimpleNamespace(
        time=lambda: float(next(seconds)),
        strftime=time.strftime,
        localtime=time.localtime,
    )
