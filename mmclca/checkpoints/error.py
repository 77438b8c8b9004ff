# Copyright (c) mmclca contributors. Licensed under Apache-2.0.


class CheckpointError(RuntimeError):
    """A checkpoint cannot be read or written, is unsafe, or does not fit."""


# errors of mmengine, mmpretrain and mmclca about settings and files
WRONG_INPUT = (
    AssertionError,
    CheckpointError,
    FloatingPointError,
    ImportError,
    IndexError,
    KeyError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
)
