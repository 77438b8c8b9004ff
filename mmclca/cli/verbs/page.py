# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A page that names photographs: ``mmclca page MODEL``."""

from pathlib import Path

from .. import Parser, command
from .model import add_device, add_folder, model_of, threshold_of


def parse_args():
    parser = Parser(
        description='Serve a page on this computer: drop a photograph, see '
        'its name and what the model keeps of it'
    )
    add_folder(parser)
    add_page_arguments(parser)
    add_device(parser)
    parser.set_defaults(config=None, cfg_options={})
    args = parser.parse_args()
    args.checkpoint = model_of(parser, args.folder)
    args.reject = threshold_of(args.folder)
    return args


def add_page_arguments(parser: Parser) -> None:
    """Add where the page is served.

    Args:
        parser (Parser): The parser to extend.
    """
    parser.add('--port', 'port (default: a free one from 7860 on)', type=int)
    parser.add(
        '--host',
        'address to listen at (default: %(default)s, reached from this '
        'computer alone). 0.0.0.0 shows the page to the whole network, '
        'without a password',
        '127.0.0.1',
    )


main = command('app', parse_args, root=Path.cwd())
