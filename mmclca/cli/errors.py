# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""User errors: a command exits with one line."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sysconfig import get_path
from traceback import extract_tb

from mmclca.checkpoints.error import WRONG_INPUT, CheckpointError
from mmclca.utils.messages import did_you_mean

# user errors even after the start: numbers, files
LATE_ERRORS = (CheckpointError, FileNotFoundError, FloatingPointError)
# messages from torch, mmcv and mmpretrain about wrong settings and files
USER_MESSAGES = re.compile(
    'shapes cannot be multiplied|must match the size of tensor|multi-target '
    'not supported|Found 0 files in subfolders|failed to load image'
)
# Python's own errors, unless our code raises them
PLAIN = AttributeError, LookupError, RecursionError, TypeError, ValueError
UNKNOWN_TYPE = re.compile(r'(\S+) is not in the \S+::(.+?) registry')
# errors of the disk or its permissions, not of the command
DISK = {
    *(errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC),
    *(errno.EPERM, errno.EROFS),
}

# folders of Python and of this package
LIBRARIES = (get_path('stdlib'), Path(__file__).parents[1])


class UsageError(SystemExit):
    """User error: the command exits with one line and exit code 2.

    Args:
        text (str): Object, problem, found and expected values, and fix.
    """


@contextmanager
def usage_errors(source: str | Path | None = None) -> Iterator[None]:
    """Raise a :class:`UsageError` if settings or files are wrong.

    Args:
        source (str | Path, optional): Start of the line, such as a config
            path. Defaults to None.
    """
    try:
        yield
    except WRONG_INPUT as error:
        raise usage_error(source, error) from error


@contextmanager
def setup_errors(source, runner) -> Iterator[None]:
    """Raise a ``UsageError`` if a ``Runner`` cannot start.

    Errors after the start (data and model built, weights loaded) keep their
    traceback, unless they are in ``LATE_ERRORS`` or match ``USER_MESSAGES``.
    Errors in modules of the user keep it, too, as it shows the bug.
    """
    from mmengine.hooks import Hook

    class StartedHook(Hook):
        priority = 'LOWEST'
        started = False

        def before_train(self, runner):
            self.started = True

        before_test = before_train

    hook = StartedHook()
    runner.register_hook(hook)
    try:
        yield
    except (*WRONG_INPUT, RuntimeError) as error:
        late = hook.started or not isinstance(error, WRONG_INPUT)
        users = isinstance(error, LATE_ERRORS) or USER_MESSAGES.search(
            str(error)
        )
        if late and (not users or _is_in_user_code(error)):
            raise
        raise usage_error(source, error) from error


def _is_in_user_code(error: BaseException) -> bool:
    """Return whether a module outside of all installed packages took part."""
    files = [Path(frame.filename) for frame in extract_tb(error.__traceback__)]
    return any(
        file.is_file()
        and 'site-packages' not in file.parts
        and not any(map(file.is_relative_to, LIBRARIES))
        for file in files
    )


def is_of_disk(error: BaseException | None) -> bool:
    """Return whether an error comes from the disk or its permissions."""
    while error and not (isinstance(error, OSError) and error.errno in DISK):
        error = error.__cause__
    return error is not None


def usage_error(source, error: Exception) -> UsageError:
    """Convert an error in ``WRONG_INPUT`` to a ``UsageError``."""
    begin = '' if source is None else f'{source}: '
    return UsageError(f'{begin}{describe_error(error)}')


def describe_error(error: Exception) -> str:
    """Describe an error in one line; suggest names for an unknown type."""
    text = ' '.join(_text(error).split())
    if found := UNKNOWN_TYPE.search(text):
        return _unknown_type(*found.groups())
    return text


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.ENOENT:
        return f'{error.filename} does not exist; check the path'
    if isinstance(error, OSError) and error.strerror and not error.filename:
        return error.strerror
    text = str(error)
    if isinstance(error, KeyError) and error.args:
        text = str(error.args[0])  # str(error) puts it in quotes
    if 'Original Traceback' in text:  # from a data loader process
        text = text.strip().rpartition('\n')[2]
    *_, last = extract_tb(error.__traceback__) or [None]
    bare = isinstance(error, PLAIN)
    if bare and last and 'raise' not in last.line:
        # Python's own messages do not name the setting
        text = f'{type(error).__name__} {text} at `{last.line}` ({last.name})'
    # the code, for an assertion without a message
    return text or last.line


def _unknown_type(name: str, kind: str) -> str:
    known = sorted(_types(kind))
    hint = did_you_mean(name, known, most=3)
    return (
        f'type={name!r} is not registered as {kind}{hint}; check the '
        'spelling, or add its module to custom_imports'
    )


def _types(kind: str) -> Iterator[str]:
    """Yield the names registered in all registries called ``kind``."""
    from mmengine import registry

    import mmclca.registry  # noqa: F401, a child of the others

    for root in vars(registry).values():
        if isinstance(root, registry.Registry) and root.name == kind:
            yield from _types_below(root)


def _types_below(registry) -> Iterator[str]:
    registry.import_from_location()
    own = registry.scope not in ('mmengine', 'mmpretrain')
    for name in registry.module_dict:
        yield f'{registry.scope}.{name}' if own else name
    for child in registry.children.values():
        yield from _types_below(child)
