# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw a data set of leaf cultivars.

python tools/dataset_converters/synthetic_leaves.py data/synthetic_leaves

The classes differ in shape alone: outline, teeth and veins. The same options
give the same files, byte for byte, with any number of jobs.
"""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('synthetic_leaves')
