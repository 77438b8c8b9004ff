# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Errors of mmengine and mmpretrain that build what a config describes."""

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmengine import registry

import mmclca.registry  # noqa: F401, a child of mmengine's registries
from mmclca.errors import Error
from mmclca.utils.messages import did_you_mean

# mmengine's message about an unknown type
UNKNOWN_TYPE = re.compile(r'(\S+) is not in the \S+::(.+?) registry')
# errors whose messages are sentences; others are often just a name
SENTENCES = AssertionError, RuntimeError, ValueError


@contextmanager
def config_errors(source: str | Path | None = None) -> Iterator[None]:
    """Raise ``Error`` if the objects of a config cannot be built.

    Registries and constructors raise errors of any type for an unknown type,
    an unknown or missing argument, or a value of a wrong type or shape. Only
    the building belongs into this context, no training and no testing, whose
    errors are bugs.

    Args:
        source (str | Path, optional): Path of the config, which begins the
            message. Defaults to None.

    Raises:
        Error: Names the type and the setting if the original error does. A
            ``mmclca.Error`` gets the path of the config.
        OSError, ImportError, MemoryError: Unchanged.
    """
    try:
        yield
    except (ImportError, MemoryError, OSError):
        raise
    except Exception as error:
        start = '' if source is None else f'{source}: '
        raise Error(f'{start}{_describe(error)}') from error


def _describe(error: Exception) -> str:
    """Describe an error; suggest names for an unknown type."""
    # str(KeyError) puts its message in quotes
    is_key = isinstance(error, KeyError) and error.args
    message = str(error.args[0] if is_key else error)
    if match := UNKNOWN_TYPE.search(message):
        return _describe_unknown_type(match[1], match[2])
    if message and isinstance(error, SENTENCES):
        return message
    description = f'{type(error).__name__}: {message}'.removesuffix(': ')
    if 'keyword argument' in message:
        return description  # names the class and the argument
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f'{description} at `{place.line}` ({place.name})'


def _describe_unknown_type(name: str, registry_name: str) -> str:
    roots = [
        root
        for root in vars(registry).values()
        if isinstance(root, registry.Registry) and root.name == registry_name
    ]
    names = {x for root in roots for x in _list_types(root)}
    hint = did_you_mean(name, sorted(names), limit=3)
    return (
        f'type={name!r} is not registered as {registry_name}{hint}; check '
        'the spelling, or add its module to custom_imports'
    )


def _list_types(root: registry.Registry) -> Iterator[str]:
    """Yield the names in a registry and its children, with their scopes."""
    root.import_from_location()
    is_default = root.scope in ('mmengine', 'mmpretrain')
    for name in root.module_dict:
        yield name if is_default else f'{root.scope}.{name}'
    for child in root.children.values():
        yield from _list_types(child)
