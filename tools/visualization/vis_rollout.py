# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the attention rollout to the last CLS token."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('vis-rollout')
