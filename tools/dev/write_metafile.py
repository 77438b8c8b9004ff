# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Bring metafile.yml up to date with the configs beside it.

``python tools/dev/write_metafile.py configs/clca`` adds new configs, drops
those that are gone and counts costs; results and weights stay as they are.
"""

import argparse
from pathlib import Path

import yaml
from mmengine.config import Config
from mmengine.registry import init_default_scope

from mmclca.utils.flops import count_config

ROOT = Path(__file__).resolve().parents[2]


def describe(path, known, collection):
    """What the metafile says of the config ``path``, over what it said."""
    cost = count_config(Config.fromfile(path).model)
    data_and_size = path.stem.rpartition('_')[2]
    counted = {
        'Training Data': data_and_size.rpartition('-')[0],
        'FLOPs': cost.flops,
        'Parameters': cost.params,
    }
    return {
        **known,
        'Name': path.stem,
        'In Collection': collection,
        'Config': path.relative_to(ROOT).as_posix(),
        'Metadata': {**known.get('Metadata', {}), **counted},
    }


def updated(folder):
    """The content of the metafile of ``folder``, brought up to date."""
    metafile = yaml.safe_load((folder / 'metafile.yml').read_text())
    known = {model['Name']: model for model in metafile.get('Models', [])}
    collection = metafile['Collections'][0]['Name']
    metafile['Models'] = [
        describe(path, known.get(path.stem, {}), collection)
        for path in sorted(folder.glob('*.py'))
    ]
    return metafile


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('folders', nargs='+', type=Path)
    init_default_scope('mmpretrain')
    for folder in parser.parse_args().folders:
        text = yaml.safe_dump(
            updated(folder.resolve()), sort_keys=False, allow_unicode=True
        )
        (folder / 'metafile.yml').write_text(text)


if __name__ == '__main__':
    main()
