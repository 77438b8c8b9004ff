# Copyright (c) mmclca contributors. Licensed under Apache-2.0.


class CheckpointError(RuntimeError):
    """A checkpoint cannot be read or written, is unsafe, or does not fit."""
