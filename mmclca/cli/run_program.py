# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run a program: its streams, arguments, errors and exit code."""

import os
import sys
import traceback
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path

from mmclca.errors import is_wrong_input
from mmclca.utils.events import INTERRUPTED
from mmclca.utils.messages import print_safe
from mmclca.utils.quiet import silence_libraries

from .errors import describe_error, is_of_disk

FAILED, WRONG = 1, 2  # exit codes
REPORT = (
    'This is a bug in mmclca, or in your own module. Please report it with '
    'the lines above and the command; see docs/troubleshooting.md.'
)


def run(main: Callable[[], int | None]) -> None:
    """Run a program; user errors and Ctrl-C end it with one line.

    Other errors keep their traceback, followed by a request to report
    them. With ``--debug``, all errors keep their traceback.

    Args:
        main (Callable): The program, which returns the exit code; a
            ``KeyboardInterrupt`` contains the advice on how to resume.

    Raises:
        SystemExit: If the exit code is not 0: ``FAILED`` for a bug and for an
            error of the disk, ``WRONG``, ``INTERRUPTED``, or the program's own
            code.
    """
    debug = '--debug' in sys.argv
    prepare_process()
    try:
        code = main()
    except KeyboardInterrupt as error:
        if debug:
            raise
        print(file=sys.stderr)  # the terminal has shown ^C
        print_safe(f'Stopped. {error}'.strip(), file=sys.stderr)
        code = INTERRUPTED
    except Exception as error:
        if debug:
            raise
        sys.stdout.flush()
        code = FAILED
        if not is_wrong_input(error):
            traceback.print_exc()
            print(REPORT, file=sys.stderr)
        else:
            if not is_of_disk(error):
                code = WRONG
            program = Path(sys.argv[0]).name
            line = f'{program}: error: {describe_error(error)}'
            print_safe(line, file=sys.stderr)
    if code:
        sys.exit(code)


def prepare_process() -> None:
    """Silence libraries, escape unencodable characters, and expand ``~``.

    Shells do not expand ``--out=~/model`` or ``data_root=~/leaves``.
    """
    silence_libraries()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')
    sys.argv[1:] = map(_expand_home, sys.argv[1:])


def _expand_home(argument: str) -> str:
    """Expand ``~`` at the start of an argument or after its first ``=``."""
    name, sign, value = argument.partition('=')
    if not sign:
        return os.path.expanduser(argument)
    return name + sign + os.path.expanduser(value)
