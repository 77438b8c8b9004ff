# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A user's mistake ends a tool in one line."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import extract_tb

from mmclca.checkpoints.error import CheckpointError
from mmclca.utils.messages import did_you_mean

# what mmengine, mmpretrain and mmclca raise for settings and files
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
# what is the user's even after the start: a full disk, numbers, files
LATE = (CheckpointError, FileNotFoundError, FloatingPointError)
# what torch, mmcv and mmpretrain say of settings and files that are wrong
USERS = re.compile(
    'shapes cannot be multiplied|must match the size of tensor|multi-target '
    'not supported|Found 0 files in subfolders|failed to load image'
)
UNKNOWN_TYPE = re.compile(r'(\S+) is not in the \S+::(.+?) registry')


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
        from mmengine.config.utils import ConfigParsingError

        if isinstance(error, ConfigParsingError):
            raise mistake(source, error) from error
        raise


@contextmanager
def starting(source, runner) -> Iterator[None]:
    """Raise a ``Mistake`` where a run of a ``Runner`` cannot start.

    What is raised once data and model are built and weights are loaded is an
    error of the program, and keeps its traceback, unless it is one of
    ``LATE`` or of ``USERS``.
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
        users = isinstance(error, LATE) or USERS.search(str(error))
        if late and not users:
            raise
        raise mistake(source, error) from error


def mistake(source, error: Exception) -> Mistake:
    """Make the ``Mistake`` of one of ``WRONG_INPUT``."""
    begin = '' if source is None else f'{source}: '
    return Mistake(f'{begin}{explained(error)}')


def explained(error: Exception) -> str:
    """Describe an error in one line, with close names of an unknown type."""
    text = ' '.join(_text(error).split())
    if found := UNKNOWN_TYPE.search(text):
        return _unknown_type(*found.groups())
    return text


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.ENOENT:
        return f'there is no {error.filename}: check the path'
    text = str(error)
    if isinstance(error, KeyError) and error.args:
        text = str(error.args[0])  # str(error) puts it in quotes
    if 'Original Traceback' in text:  # of a process that loads images
        text = text.strip().rpartition('\n')[2]
    *_, last = extract_tb(error.__traceback__) or [None]
    bare = isinstance(error, LookupError | TypeError | ValueError)
    if bare and last and 'raise' not in last.line:
        # Python's own words name no setting
        text = f'{type(error).__name__} {text} at `{last.line}` ({last.name})'
    # of an assertion without a message, the code
    return text or last.line


def _unknown_type(name: str, kind: str) -> str:
    known = sorted(_types(kind))
    hint = did_you_mean(name, known, most=3) or '; check the spelling'
    return (
        f'type={name!r} is none of the {len(known)} types registered as '
        f'{kind}{hint}; one of your own: name its module in custom_imports'
    )


def _types(kind: str) -> Iterator[str]:
    """Yield the names that a config may give to a type, of all packages."""
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
