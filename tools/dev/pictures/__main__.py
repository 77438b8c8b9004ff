# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the pictures of results, synthetic leaves and screens in docs/:
``python tools/dev/pictures [NAME ...]``. Diagrams are SVG files.
"""

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / 'tools/dev'), str(ROOT / 'tools/research')]


import beliefs  # noqa: E402
import few_photos  # noqa: E402
import leaves  # noqa: E402
import results  # noqa: E402
import screens  # noqa: E402
import speed_charts  # noqa: E402
from files import save  # noqa: E402

from mmclca import cli  # noqa: E402

MODULES = results, few_photos, beliefs, speed_charts, leaves, screens
PICTURES = {
    name: draw for module in MODULES for name, draw in module.PICTURES.items()
}


def main():
    parser = cli.Parser(description=__doc__)
    parser.add(
        'names', 'such as rollout or methods/atc (default: all)', nargs='*'
    )
    args = parser.parse_args()
    os.chdir(ROOT)
    begin = time.time()
    for name in args.names or PICTURES:
        start = time.time()
        size = save(PICTURES[name](), name)
        print(f'{name}: {size / 1000:.0f} kB, {time.time() - start:.0f} s')
    print(f'{time.time() - begin:.0f} s in total')


if __name__ == '__main__':
    cli.run(main)
