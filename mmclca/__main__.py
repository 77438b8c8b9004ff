# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Command line: ``python -m mmclca COMMAND`` or ``mmclca COMMAND``."""

from mmclca.cli.main import main

if __name__ == '__main__':
    main()
