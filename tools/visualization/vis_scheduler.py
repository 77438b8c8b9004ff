# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Plot the learning rate with MMPretrain's tool: ``python
tools/visualization/vis_scheduler.py CONFIG``."""

from mmclca import cli

main = cli.vis_scheduler

if __name__ == '__main__':
    cli.run(main)
