# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Wrong input, how it differs from a bug, and settings in its messages."""

import re
from collections.abc import Callable

# `out`, `overwrite=True` or `model.head.num_classes=4`
SETTING = re.compile(r'`([a-z][\w.]*)(?:=([^`\s]+))?`')


class Error(ValueError):
    """Wrong input: a setting, file or photo that mmclca detects and refuses.

    The message names the object, the problem, the values found and expected,
    and the fix. A setting is written as an argument of the function, such as
    ``out`` or ``overwrite=True``, in single backquotes. Commands print the
    message in one line, with the option instead (``--out`` or
    ``--overwrite``), and exit with code 2. See :func:`is_wrong_input` for
    other errors that are not bugs.
    """


def is_wrong_input(error: Exception) -> bool:
    """Return whether an error is of the user, not a bug.

    These are :class:`Error`, errors of files and folders, and missing
    packages, such as those of an extra. A failed import inside mmclca is a
    bug.
    """
    if isinstance(error, ImportError):
        is_missing = isinstance(error, ModuleNotFoundError)
        package = (error.name or '').partition('.')[0]
        return not package or (is_missing and package != 'mmclca')
    return isinstance(error, (Error, OSError))


def replace_settings(
    message: str, describe: Callable[[str, str | None], str | None]
) -> str:
    """Replace the settings in backquotes in a message.

    Args:
        message (str): Message of an :class:`Error`.
        describe (Callable): Returns the text for a setting and its value
            (None without one), or None to keep both as they are.
    """

    def replace(match: re.Match) -> str:
        description = describe(match[1], match[2])
        return match[0] if description is None else description

    return SETTING.sub(replace, message)
