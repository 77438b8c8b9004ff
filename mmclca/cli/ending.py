# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How every tool of this project ends."""

import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CalledProcessError

from mmclca.utils.terminal import say

from .mistakes import Mistake

# exit codes, that of Ctrl-C as shells have it
WRONG, INTERRUPTED = 2, 130


def run(main: Callable[[], int | None], go_on: str = '') -> None:
    """Run a tool; a mistake of the user and Ctrl-C end it in one line.

    Anything else is an error of the program, and keeps its traceback, as
    all do with ``--debug``.

    Args:
        main (Callable): The tool; its result is the exit code.
        go_on (str): How to go on after Ctrl-C, unless the tool raises a
            ``KeyboardInterrupt`` that says so. Defaults to ''.

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
        said = f'{error}' or go_on
        print(file=sys.stderr)  # the terminal has shown ^C
        _say(f'interrupted: {said}' if said else 'interrupted')
        code = INTERRUPTED
    if code:
        sys.exit(code)


def _say(text: str) -> None:
    sys.stdout.flush()
    say(f'{Path(sys.argv[0]).name}: {text}', file=sys.stderr)
