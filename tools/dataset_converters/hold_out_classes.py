# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Hold classes out of a data set, to try what becomes of unknown ones.

python tools/dataset_converters/hold_out_classes.py data/leaf40_white \
    --train train_3shot.txt --val train.txt --test test.txt --num 10 --out DIR

No image is copied or moved: lists are written, for train.py and open_set.py.
"""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('hold_out_classes')
