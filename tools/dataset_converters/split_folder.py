# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Split your own images, a folder a class, into training and validation.

python tools/dataset_converters/split_folder.py my_leaves --val-fraction 0.2

No image is copied or moved: lists are written, and the command to train with
them is printed.
"""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('split_folder')
