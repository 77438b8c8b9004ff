# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import argparse


class Parser(argparse.ArgumentParser):
    """A parser with ``--debug``, which :func:`mmclca.cli.run` reads."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.add_argument(
            '--debug',
            action=_Flag,
            help='show the traceback of a mistake, not one line',
        )


class _Flag(argparse.Action):
    """An option that leaves nothing among the arguments of a tool."""

    def __init__(self, option_strings, dest, help):
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser, namespace, values, option_string=None):
        pass
