# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What to do with three photographs a class: frozen and trained arms.

Measures what classifiers of frozen features reach on ten draws of three
training images a class, reads what tools/sweep.py trained on the same draws
(configs/sweeps/few_photographs.py and few_photographs_why.py), and writes
tables with paired differences and a picture. Arms that have a result are not
measured again.
"""

import os
from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import positive

RESULTS = Path('docs/results')
PICTURE = Path('docs/pictures/few_photographs/accuracy_gmacs.png')
DATASETS = ('leaf40_white', 'leaf40')
BACKBONES = ('deit-tiny-p16', 'vit-tiny-p16')


def parse_args():
    parser = cli.Parser(description=__doc__.partition('\n\n')[2])
    for name, contents in (('data', 'data sets'), ('weights', 'weights')):
        variable = f'MMCLCA_{name.upper()}'
        meaning = f'folder of {contents} (default: that of {variable})'
        place = os.environ.get(variable, name)
        parser.add(f'--{name}', meaning, Path(place), type=Path)
    parser.add('--datasets', 'folders in it', DATASETS, nargs='+')
    parser.add(
        '--backbones', 'weights', BACKBONES, nargs='+', choices=BACKBONES
    )
    add_files(parser)
    rounds = 'timed passes of each model'
    parser.add('--rounds', rounds, 30, type=positive)
    parser.flag('--page-only', 'measure no arm: write the page alone')
    return parser.parse_args()


def add_files(parser):
    files = {
        '--results': ('folder of the results', RESULTS / 'few_photographs'),
        '--why': ('of changes', RESULTS / 'few_photographs_why'),
        '--grid': ('that of the sweep', 'configs/sweeps/few_photographs.py'),
        '--template': ('of the page', RESULTS / 'few_photographs.md.j2'),
        '--page': ('to write', RESULTS / 'few_photographs.md'),
        '--picture': ('to write', PICTURE),
    }
    for name, (meaning, default) in files.items():
        parser.add(name, meaning, Path(default), type=Path)


main = cli.command('few_photographs', parse_args)

if __name__ == '__main__':
    cli.run(main)
