# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Measure speed and GMACs with token reduction."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('throughput')
