# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Output of a fit: a few lines and a bar, and all else in a file."""

import sys
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from io import StringIO, TextIOBase
from pathlib import Path
from typing import TextIO

from mmengine.hooks import Hook
from mmengine.logging import MMLogger
from rich import get_console
from rich.console import Console
from rich.progress import Progress

from mmclca.utils.messages import printable, say


class Log(TextIOBase):
    """Takes what libraries print, and knows the screen.

    Within its context standard output, standard error and the loggers of
    mmengine write to it; bars of mmpretrain are drawn where there is a
    terminal. It keeps the text until :meth:`open` gives it a
    file, so that a call that is refused leaves none.
    """

    def __init__(self):
        self.file = StringIO()

    def __enter__(self) -> 'Log':
        self.screen, self.bars = sys.stdout, sys.stderr
        self.stack = ExitStack()
        self.stack.enter_context(redirect_stdout(self))
        self.stack.enter_context(redirect_stderr(self))
        move_loggers(self.screen, self)
        if self.bars.isatty():
            get_console().file = self.bars
        return self

    def __exit__(self, *error) -> None:
        self.stack.close()
        move_loggers(self, self.screen)
        get_console().file = None  # standard output
        self.file.close()
        self.file = StringIO()

    def open(self, path: Path) -> None:
        """Append what came so far, and all that comes, to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = self.file.getvalue()
        self.file = path.open('a', encoding='utf-8', errors='replace')
        self.file.write(text)

    def write(self, text: str) -> int:
        """Write to the file, or keep the text until there is one."""
        return self.file.write('\n'.join(map(printable, text.split('\n'))))

    def flush(self) -> None:
        """See ``io.TextIOBase``."""
        self.file.flush()

    def tell_user(self, line: str) -> None:
        """Show a line on the screen; it goes to the file, too."""
        say(line, file=self.screen)
        say(line, file=self)


def move_loggers(before: TextIO, after: TextIO) -> None:
    """Have mmengine's loggers write elsewhere.

    Args:
        before (TextIO): Where they write; others are left alone.
        after (TextIO): Where they are to write.
    """
    for logger in MMLogger._instance_dict.values():
        for handler in logger.handlers:
            if vars(handler).get('stream') is before:
                handler.setStream(after)


class BarHook(Hook):
    """Draws on a terminal how far a training is, and the time left.

    Args:
        screen (TextIO): Where it is drawn.
        title (str): What is trained, in a word or two.
    """

    priority = 'LOWEST'

    def __init__(self, screen: TextIO, title: str):
        console = Console(file=screen)
        self.title = title
        self.bar = Progress(
            console=console, transient=True, disable=not console.is_terminal
        )

    def before_train(self, runner) -> None:
        """Begin with what an earlier run has done."""
        self.task = self.bar.add_task(
            self.title, total=runner.max_iters, completed=runner.iter
        )
        self.bar.start()

    def after_train_iter(self, *_, **__) -> None:
        """Move on by a step."""
        self.bar.advance(self.task)

    def after_run(self, runner) -> None:
        """Remove it."""
        self.bar.stop()
