# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How every tool of this project ends."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from subprocess import CalledProcessError

from mmclca.utils.terminal import say

from .mistakes import Mistake, mistake

# exit codes, that of Ctrl-C as shells have it
WRONG, INTERRUPTED = 2, 130


def run_command(name: str) -> None:
    """Run a command as :func:`run` does.

    Args:
        name (str): Of its module, see :func:`main_of`.
    """
    run(main_of(name))


def main_of(name: str) -> Callable[[], int | None]:
    """The ``main`` of a command, which reads the command line.

    Args:
        name (str): Of its module in ``mmclca.cli.commands``, which reads
            the command line by ``parse_args`` and does the work by
            ``main``.
    """
    command = import_module(f'mmclca.cli.commands.{name}')

    def main():
        args = command.parse_args()
        go_on = vars(args).pop('go_on')
        try:
            return command.main(args)
        except ImportError as error:  # a package may be missing
            raise mistake(None, error) from error
        except KeyboardInterrupt as error:
            raise KeyboardInterrupt(f'{error}' or go_on) from None

    return main


def run(main: Callable[[], int | None]) -> None:
    """Run a tool; a mistake of the user and Ctrl-C end it in one line.

    Anything else is an error of the program, and keeps its traceback, as
    all do with ``--debug``.

    Args:
        main (Callable): The tool; its result is the exit code. A
            ``KeyboardInterrupt`` that it raises says how to go on.

    Raises:
        SystemExit: With the exit code where it is not 0: ``WRONG``,
            ``INTERRUPTED``, or that of the tool.
    """
    debug = '--debug' in sys.argv
    try:
        code = main()
    except Mistake as error:
        if debug:
            raise (error.__cause__ or error) from None
        _say(f'error: {error}')
        code = WRONG
    except CalledProcessError as error:  # has said itself what is wrong
        code = error.returncode
    except KeyboardInterrupt as error:
        if debug:
            raise
        print(file=sys.stderr)  # the terminal has shown ^C
        _say(f'interrupted: {error}' if f'{error}' else 'interrupted')
        code = INTERRUPTED
    if code:
        sys.exit(code)


def _say(text: str) -> None:
    sys.stdout.flush()
    say(f'{Path(sys.argv[0]).name}: {text}', file=sys.stderr)
