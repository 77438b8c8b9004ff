# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from .mistakes import plain_errors


def command(name: str, parse_args: Callable, **paths: Path) -> Callable:
    """The ``main`` of a tool.

    It reads the command line, and only then imports the module that does
    the work, which imports torch.

    Args:
        name (str): Of the module in ``mmclca.cli.commands``; its ``main``
            takes the arguments.
        parse_args (Callable): Gives the arguments.
        **paths (Path): Of this checkout, which that ``main`` needs.
    """

    def main(*argv):
        args = parse_args(*argv)
        with plain_errors():  # packages may be missing
            module = import_module(f'mmclca.cli.commands.{name}')
        return module.main(args, **paths)

    return main
