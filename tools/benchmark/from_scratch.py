# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Models trained from scratch: table and page.

Reads what tools/sweep.py trained (configs/sweeps/family_from_scratch.py),
measures how far a linear classifier gets with the features of the initial
weights, once, where the page asks for that, and writes the page.
"""

from pathlib import Path

from mmclca import cli

RESULTS = Path('docs/results')


def parse_args():
    parser = cli.Parser(description=__doc__.partition('\n\n')[2])
    files = {
        '--results': (
            'folder of the results',
            RESULTS / 'family_from_scratch',
        ),
        '--grid': (
            'that of the sweep',
            'configs/sweeps/family_from_scratch.py',
        ),
        '--template': ('of the page', RESULTS / 'family.md.j2'),
        '--page': ('to write', RESULTS / 'family.md'),
    }
    for name, (meaning, default) in files.items():
        parser.add(name, meaning, Path(default), type=Path)
    return parser.parse_args()


main = cli.command('from_scratch', parse_args)

if __name__ == '__main__':
    cli.run(main)
