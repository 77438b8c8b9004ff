# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Wrong input, and how its messages name settings."""

import re
from collections.abc import Callable

# `out` or `overwrite=True`
SETTING = re.compile(r'`([a-z]\w*)(?:=([^`\s]+))?`')


class Error(ValueError):
    """Wrong input: a setting, file or photo that mmclca detects and refuses.

    The message names the object, the problem, the values found and expected,
    and the fix. A setting is written as an argument of the function, in
    backquotes: ```` `out` ```` or ```` `overwrite=True` ````. Commands print
    the message in one line, with the option instead (``--out`` or
    ``--overwrite``), and exit with code 2. Any other exception is a bug, and
    keeps its traceback.
    """


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
