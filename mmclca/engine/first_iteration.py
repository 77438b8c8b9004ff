# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Report a mismatch of model and data in one line.

Most settings of a config are checked when its objects are built. Whether the
head fits the backbone, and the images and labels fit the model, shows only
when torch computes the first batch.
"""

import re
from functools import wraps
from pathlib import Path
from sysconfig import get_path
from traceback import extract_tb

from mmengine.runner import BaseLoop

from mmclca.errors import Error

# messages of torch about operands of wrong shapes
SHAPES = re.compile(
    'shapes cannot be multiplied|must match the size of tensor|multi-target '
    'not supported'
)
LIBRARIES = (Path(get_path('stdlib')), Path(__file__).parents[1])


def convert_shape_errors(loop: BaseLoop, source: str | None) -> None:
    """Make the first iteration of a loop raise ``Error`` for wrong shapes.

    Errors of all other kinds, in later iterations, and with a module of the
    user among the calls are bugs, whose traceback is needed.

    Args:
        loop (BaseLoop): Loop of training, validation or test.
        source (str, optional): Path of the config, which begins the message.
    """
    run_iter = loop.run_iter

    @wraps(run_iter)
    def run_first(*args, **kwargs):
        vars(loop).pop('run_iter', None)
        try:
            return run_iter(*args, **kwargs)
        except RuntimeError as error:
            if not SHAPES.search(str(error)) or _has_user_code(error):
                raise
            start = '' if source is None else f'{source}: '
            raise Error(
                f'{start}the first batch does not fit the model: {error}; '
                "compare the head's in_channels and num_classes with the "
                'backbone, and img_size and labels with the dataset'
            ) from error

    loop.run_iter = run_first


def _has_user_code(error: BaseException) -> bool:
    """Return whether a module outside of all packages is among the calls."""
    files = [Path(call.filename) for call in extract_tb(error.__traceback__)]
    return any(
        file.is_file()
        and 'site-packages' not in file.parts
        and not any(file.is_relative_to(folder) for folder in LIBRARIES)
        for file in files
    )
