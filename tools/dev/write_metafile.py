# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Update the costs in metafile.yml and in the configs next to it.

``python tools/dev/write_metafile.py configs/clca`` adds new configs to the
metafile, drops deleted ones, and counts the costs. It writes them there and
into the ``# Cost:`` line in each config. Results and weights do not change.
"""

import ast
import re
from functools import cache
from pathlib import Path

import yaml

from mmclca import cli
from mmclca.utils.files import replace_text

ROOT = Path(__file__).resolve().parents[2]


@cache
def count_cost(path):
    """Count the cost of a config."""
    from mmengine.config import Config

    side = int(re.search(r'-(\d+)px$', path.stem)[1])
    return cost_of_text(repr(Config.fromfile(path).model.to_dict()), side)


@cache
def cost_of_text(model, side):
    """Count the cost at an image size; equal models are counted once."""
    from mmclca.evaluation.cost import count_config

    return count_config(ast.literal_eval(model), (side, side))


def with_cost(entry, cost):
    """Update the ``# Cost:`` line in a config text.

    Words such as ``at most``, for costs that depend on the image, stay.
    """
    numbers = (
        f'{cost.flops / 1e9:.2f} GMACs, {cost.params / 1e6:.2f} M parameters'
    )
    old = r'^(# Cost: [a-z ]*)[\d.]+ GMACs, [\d.]+ M parameters'
    return re.sub(old, rf'\g<1>{numbers}', entry, flags=re.MULTILINE)


def describe(path, previous, collection):
    """Update the metafile entry of a config."""
    cost = count_cost(path)
    data_and_size = path.stem.rpartition('_')[2]
    counted = {
        'Training Data': data_and_size.rpartition('-')[0],
        'FLOPs': cost.flops,
        'Parameters': cost.params,
    }
    return {
        **previous,
        'Name': path.stem,
        'In Collection': collection,
        'Config': path.relative_to(ROOT).as_posix(),
        'Metadata': {**previous.get('Metadata', {}), **counted},
    }


def updated(folder):
    """Return the updated metafile content for a folder."""
    metafile = yaml.safe_load((folder / 'metafile.yml').read_text('utf-8'))
    previous = {model['Name']: model for model in metafile.get('Models', [])}
    collection = metafile['Collections'][0]['Name']
    metafile['Models'] = [
        describe(path, previous.get(path.stem, {}), collection)
        for path in sorted(folder.glob('*.py'))
    ]
    return metafile


def main():
    parser = cli.Parser(description=__doc__.partition('\n')[0])
    parser.add_argument('folders', nargs='+', type=Path)
    folders = parser.parse_args().folders
    from mmengine.registry import init_default_scope

    init_default_scope('mmpretrain')
    for folder in folders:
        folder = folder.resolve()
        entry = yaml.safe_dump(
            updated(folder), sort_keys=False, allow_unicode=True
        )
        replace_text(folder / 'metafile.yml', entry)
        for path in folder.glob('*.py'):
            replace_text(
                path, with_cost(path.read_text('utf-8'), count_cost(path))
            )


if __name__ == '__main__':
    cli.run(main)
