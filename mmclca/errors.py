# Copyright (c) mmclca contributors. Licensed under Apache-2.0.


class Error(ValueError):
    """Wrong input: a setting, file or photo that mmclca detects and refuses.

    The message names the object, the problem, the values found and expected,
    and the fix. Commands print it in one line and exit with code 2. Any other
    exception is a bug, and keeps its traceback.
    """
