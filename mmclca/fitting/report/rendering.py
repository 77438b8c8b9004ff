# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The template of the report."""

import re

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from . import formats

OPTION = re.compile(r'(--[a-z-]+)')
FILTERS = ('percent', 'about', 'of_hundred', 'digits', 'duration', 'some')


def render(**parts) -> str:
    """Fill the template; names of classes and files are text, no markup.

    Args:
        **parts: What it is made of.
    """
    environment = Environment(
        loader=PackageLoader('mmclca.fitting.report', 'templates'),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {name: vars(formats)[name] for name in FILTERS}
    environment.filters['options'] = _options
    environment.globals['plural'] = formats.plural
    return environment.get_template('report.html').render(parts)


def _options(text: str) -> Markup:
    """A text whose options, such as --groups, stand in one line as code."""
    marked = r'<code class="option">\1</code>'
    return Markup(OPTION.sub(marked, str(escape(text))))
