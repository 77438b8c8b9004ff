# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A user's mistake ends a tool in one line."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import extract_tb

from mmclca.checkpoints.error import CheckpointError

# what mmengine, mmpretrain and mmclca raise for settings and files
WRONG_INPUT = (
    AssertionError,
    CheckpointError,
    ImportError,
    KeyError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
)


class Mistake(SystemExit):
    """Ends a tool with one line, and by ``mmclca.cli.run`` with exit code 2.

    Args:
        text (str): What came, what is allowed, and how to fix it.
    """


@contextmanager
def plain_errors(source=None) -> Iterator[None]:
    """Raise a :class:`Mistake` where settings or files are wrong.

    Args:
        source (str | Path, optional): What the line begins with, such as the
            name of the config. Defaults to None, nothing.
    """
    try:
        yield
    except WRONG_INPUT as error:
        raise mistake(source, error) from error
    except RuntimeError as error:
        if _is_of_config(error):
            raise mistake(source, error) from error
        raise


def _is_of_config(error: RuntimeError) -> bool:
    from mmengine.config.utils import ConfigParsingError

    return isinstance(error, ConfigParsingError)


def mistake(source, error: Exception) -> Mistake:
    """The one line that is said of an error.

    Args:
        source (str | Path, optional): What the line begins with.
        error (Exception): One of ``WRONG_INPUT``.
    """
    begin = '' if source is None else f'{source}: '
    return Mistake(f'{begin}{explained(error)}')


def explained(error: Exception) -> str:
    """What an error says, in one line, with what it may have been."""
    from .names import explained_name

    text = ' '.join(_text(error).split())
    return explained_name(error, text) or text


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.ENOENT:
        return f'there is no {error.filename}: check the path'
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])  # str(error) puts it in quotes
    return str(error) or _failed_line(error)


def _failed_line(error: Exception) -> str:
    """The code that an assertion without a message asks for."""
    return extract_tb(error.__traceback__)[-1].line
