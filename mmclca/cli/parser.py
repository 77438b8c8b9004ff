# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import argparse
from typing import NoReturn

from mmclca.utils.terminal import printable


class Parser(argparse.ArgumentParser):
    """A parser with ``--debug``, which :func:`mmclca.cli.run` reads.

    Args:
        description (str): What the command does.
        go_on (str): How to go on after Ctrl-C. Defaults to ''.
        **more: Of ``argparse.ArgumentParser``.
    """

    def __init__(self, description: str = '', go_on: str = '', **more):
        super().__init__(description=description, **more)
        self.set_defaults(go_on=go_on)
        self.add_argument(
            '--debug',
            action=_Flag,
            help='show the traceback of a mistake, not one line',
        )

    def add(self, names: str, meaning: str, default=None, **more) -> None:
        """Add an argument whose help ends with its default.

        Args:
            names (str): Of a positional argument, or of an option with its
                dashes, a short one before it: ``'-p --phase'``.
            meaning (str): What the help says. The default is added unless
                the word is in it.
            default (object): The value where none is given; without a
                ``type``, values are numbers if it is one. Defaults to None.
            **more: Of ``add_argument``.
        """
        if isinstance(default, (int, float)):
            more.setdefault('type', type(default))
        if default not in (None, [], {}) and 'default' not in meaning:
            meaning += ' (default: %(default)s)'
        self.add_argument(
            *names.split(), default=default, help=meaning, **more
        )

    def error(self, message: str) -> NoReturn:
        """End with usage and one line, as argparse does."""
        super().error(printable(message))

    def flag(self, name: str, meaning: str) -> None:
        """Add an option that is False unless it is given.

        Args:
            name (str): With its dashes.
            meaning (str): What the help says.
        """
        self.add_argument(name, action='store_true', help=meaning)


class _Flag(argparse.Action):
    """An option that leaves nothing among the arguments of a tool."""

    def __init__(self, option_strings, dest, help):
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser, namespace, values, option_string=None):
        pass
