# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``mmclca report`` does."""

from mmclca.fitting.report import write_report

from .. import plain_errors


def main(args):
    with plain_errors():
        print(write_report(args.folder))
