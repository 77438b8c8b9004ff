# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run commands: ``mmclca COMMAND`` and tools."""

import argparse
import sys
from collections.abc import Callable

from mmclca.errors import Error, replace_settings
from mmclca.utils.files import atomic_backend
from mmclca.utils.messages import did_you_mean, print_safe
from mmclca.utils.quiet import hide_unused_service
from mmclca.version import __version__

from .arguments import Parser
from .listing import SUBCOMMANDS, describe_commands, load_command
from .run_program import run


def main() -> None:
    """Run the command named on the command line."""
    subcommand = _parse_subcommand(sys.argv[1:2])
    sys.argv = [f'mmclca {subcommand}', *sys.argv[2:]]
    run_command(subcommand)


def _parse_subcommand(arguments: list[str]) -> str:
    parser = argparse.ArgumentParser(
        prog='mmclca',
        usage='mmclca COMMAND ... ("mmclca COMMAND --help" for its options)',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        'subcommand', choices=SUBCOMMANDS, help=argparse.SUPPRESS
    )
    parser.add_argument('--version', action='version', version=__version__)
    if not arguments or arguments[0] in ('-h', '--help'):
        parser.description = describe_commands()
        parser.print_help()
        parser.exit()
    if not arguments[0].startswith('-') and arguments[0] not in SUBCOMMANDS:
        hint = did_you_mean(arguments[0].replace('_', '-'), SUBCOMMANDS)
        parser.error(
            f'{arguments[0]!r} is not a command{hint}; list all: mmclca --help'
        )
    return parser.parse_args(arguments).subcommand


def run_command(subcommand: str) -> None:
    """Run a command as :func:`run` does.

    Args:
        subcommand (str): Name such as ``'vis-cam'``.
    """
    run(get_main(subcommand))


def get_parser(subcommand: str) -> Parser:
    """Return the parser of a command."""
    command = load_command(subcommand)
    parser = Parser(command.__doc__ or '')
    command.add_arguments(parser)
    return parser


def get_main(subcommand: str) -> Callable[[], int | None]:
    """Return a function parsing the options and running a command."""
    command = load_command(subcommand)
    parser = get_parser(subcommand)

    def main():
        args = parser.parse_args()
        del args.debug  # which run() has read
        try:
            with hide_unused_service(), atomic_backend():
                if 'main' in vars(command):
                    return command.main(args)
                if out := command.draw(args):
                    print_safe(f'Saved      {out}')
        except Error as error:
            message = replace_settings(str(error), parser.describe_setting)
            raise Error(message) from error
        except KeyboardInterrupt as error:
            message = f'{error} {parser.advice}'.strip()
            raise KeyboardInterrupt(message) from None

    return main
