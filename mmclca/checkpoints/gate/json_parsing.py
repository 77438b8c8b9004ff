# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parse JSON to dataclasses, with a check of all types."""

import json
import sys
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from mmclca.errors import Error


def load_json_object(content: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        Error: If the content is not JSON, or another value.
    """
    try:
        parsed = json.loads(content)
    except (RecursionError, ValueError) as error:
        raise Error(f'not JSON: {error}') from error
    _check(isinstance(parsed, dict), 'a JSON object', parsed, 'the content')
    return parsed


def parse_json(annotation: Any, content: Any, key: str) -> Any:
    """Convert parsed JSON to an annotated type.

    Types are dataclasses, lists, tuples, dicts with text keys, unions, bool,
    int, float, str, None and Any.

    Args:
        annotation (type): The type to return.
        content (object): Parsed JSON.
        key (str): Name of the content in errors, such as 'probe.accuracy'.

    Raises:
        Error: If the content or a part of it has another type.
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return content
    if origin in (Union, UnionType):
        return _parse_union(inner, content, key)
    if isinstance(annotation, type) and is_dataclass(annotation):
        return parse_record(annotation, content, key)
    if origin is tuple and Ellipsis not in inner:
        _check(isinstance(content, list), annotation, content, key)
        _check(len(content) == len(inner), annotation, content, key)
        pairs = enumerate(zip(inner, content, strict=True))
        return tuple(parse_json(x, y, f'{key}[{i}]') for i, (x, y) in pairs)
    if origin in (list, tuple):
        _check(isinstance(content, list), annotation, content, key)
        return origin(
            parse_json(inner[0], value, f'{key}[{i}]')
            for i, value in enumerate(content)
        )
    if origin is dict:
        _check(isinstance(content, dict), annotation, content, key)
        return {
            name: parse_json(inner[1], value, f'{key}.{name}')
            for name, value in content.items()
        }
    if origin is Literal:
        _check(content in inner, annotation, content, key)
        return content
    if annotation is float and type(content) in (int, float):
        # false for NaN, infinity and integers that are too large for a float
        is_finite = abs(content) <= sys.float_info.max
        _check(is_finite, 'a finite number', content, key)
        return content
    _check(type(content) is annotation, annotation, content, key)
    return content


def parse_record(record_class: type, content: Any, key: str = '') -> Any:
    """Convert a JSON object to a dataclass; see :func:`parse_json`.

    Fields without a default must be there, other keys must not.
    """
    if isinstance(content, record_class):
        return content
    _check(isinstance(content, dict), record_class, content, key)
    annotations = get_type_hints(record_class)
    prefix = f'{key}.' if key else ''
    unknown = content.keys() - annotations.keys()
    if unknown:
        raise Error(f'{prefix}{min(unknown)} is not a key')
    for item in fields(record_class):
        has_default = {item.default, item.default_factory} != {MISSING}
        if item.name not in content and not has_default:
            raise Error(f'{prefix}{item.name} is missing')
    return record_class(
        **{
            name: parse_json(annotations[name], value, f'{prefix}{name}')
            for name, value in content.items()
        }
    )


def _parse_union(inner: tuple, content: Any, key: str) -> Any:
    """Convert to the first type of a union that fits."""
    if content is None and NoneType in inner:
        return None
    alternatives = [
        annotation for annotation in inner if annotation is not NoneType
    ]
    for annotation in alternatives[:-1]:
        try:
            return parse_json(annotation, content, key)
        except Error:
            continue
    return parse_json(alternatives[-1], content, key)


def _check(fits: bool, annotation: Any, content: Any, key: str) -> None:
    if not fits:
        expected = annotation
        if isinstance(annotation, type) and not get_args(annotation):
            expected = annotation.__name__
        raise Error(
            f'{key or "the record"} is {content!r:.60}, expected {expected}'
        )
