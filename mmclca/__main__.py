# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The command: ``python -m mmclca VERB``, or ``mmclca VERB``."""

from mmclca.cli.verbs import main

if __name__ == '__main__':
    main()
