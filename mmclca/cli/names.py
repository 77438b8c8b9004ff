# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Misspelt types and keywords of a config, with those that come close."""

import inspect
import re
from collections.abc import Iterator
from traceback import walk_tb

from mmclca.utils.known_names import did_you_mean

UNKNOWN_TYPE = re.compile(r'(\S+) is not in the \S+::(.+?) registry')
UNKNOWN_KEYWORD = re.compile(
    r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'"
)


def explained_name(error: Exception, text: str) -> str | None:
    """What is said of a misspelt name; None where it is something else.

    Args:
        error (Exception): What was raised where a config was built.
        text (str): Its message.
    """
    if found := UNKNOWN_TYPE.search(text):
        return _unknown_type(*found.groups())
    if found := UNKNOWN_KEYWORD.search(text):
        return _unknown_keyword(error, text, *found.groups())
    return None


def _unknown_type(name: str, kind: str) -> str:
    known = sorted(_types(kind))
    hint = did_you_mean(name, known, most=3) or '; check the spelling'
    return (
        f'type={name!r} is none of the {len(known)} types registered as '
        f'{kind}{hint}; one of your own: name its module in custom_imports'
    )


def _types(kind: str) -> Iterator[str]:
    """Names that a config may give to a type, from all packages."""
    from mmengine import registry

    import mmclca.registry  # noqa: F401, a child of the others

    roots = vars(registry).values()
    for root in roots:
        if isinstance(root, registry.Registry) and root.name == kind:
            yield from _types_below(root)


def _types_below(registry) -> Iterator[str]:
    registry.import_from_location()
    own = registry.scope not in ('mmengine', 'mmpretrain')
    for name in registry.module_dict:
        yield f'{registry.scope}.{name}' if own else name
    for child in registry.children.values():
        yield from _types_below(child)


def _unknown_keyword(
    error: Exception, text: str, function: str, keyword: str
) -> str:
    name = function.removesuffix('.__init__').rpartition('.')[2]
    kind = _class_named(name, error)
    if kind is None:
        return text
    known = sorted(_keywords(kind))
    return (
        f'{kind.__name__} takes no {keyword}'
        f'{did_you_mean(keyword, known, most=3)}; it takes {", ".join(known)}'
    )


def _class_named(name: str, error: Exception) -> type | None:
    """The class of that name, or over one of it, that was to be built."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    for frame in reversed(frames):  # from within to without
        for value in frame.f_locals.values():
            if inspect.isclass(value) and name in _names(value):
                return value
        if inspect.isclass(frame.f_globals.get(name)):
            return frame.f_globals[name]
    return None


def _names(kind: type) -> list[str]:
    return [one.__name__ for one in inspect.getmro(kind)]


def _keywords(kind: type) -> Iterator[str]:
    """Keywords of a class, those that it hands on to others among them."""
    for one in inspect.getmro(kind):
        if '__init__' not in vars(one):
            continue
        _, *parameters = inspect.signature(one.__init__).parameters.values()
        yield from (p.name for p in parameters if p.kind not in VARIADIC)
        if all(
            p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters
        ):
            return


VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
