# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Download, check and convert the Ultra-FGVC datasets."""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('ultra-fgvc')
