# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pages of results, written from templates."""

from pathlib import Path

import jinja2


def render(template: Path, **values) -> str:
    """The text of a page.

    Args:
        template (Path): Of jinja.
        **values: What it asks for by name.

    Raises:
        jinja2.UndefinedError: If it asks for what is not given.
    """
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = template.read_text('utf-8')
    return environment.from_string(text).render(**values)
