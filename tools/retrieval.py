# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find the images of a gallery that look like others.

python tools/retrieval.py CKPT --gallery my_leaves/ --queries new_leaves/
"""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('retrieval')
