# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choose the score below which an image is of no known class.

python tools/open_set.py CKPT --known my_leaves/val.txt
python tools/predict.py CKPT IMAGES --reject CKPT.threshold.json

With images of unknown classes it also measures how well that works.
"""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('open_set')
