# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Make a checkpoint small and safe to hand on: ``python
tools/model_converters/publish_model.py IN OUT``."""

from pathlib import Path

from mmclca import cli


def parse_args():
    parser = cli.Parser(
        description='Write the weights of a checkpoint alone (the EMA of them '
        'where it has one), with the config and the class names: no state of '
        'an optimizer, no log. Eight digits of the SHA-256 of the file are in '
        'its name'
    )
    parser.add('in_file', 'path or URL of a checkpoint')
    parser.add(
        'out_file',
        'file to write: NAME.pth or NAME.safetensors, NAME for both; becomes '
        'NAME_DATE-HASH.pth',
        type=Path,
    )
    parser.flag(
        '--no-ema',
        'take the weights as trained, not their moving average (EMA)',
    )
    parser.add(
        '--dataset-type',
        'data set of mmpretrain or mmclca whose class names are taken where '
        'the checkpoint has none, such as ImageNet',
    )
    parser.add(
        '--config',
        'path or name of a config, for a checkpoint that has none in it',
    )
    return parser.parse_args()


main = cli.command('publish_model', parse_args)

if __name__ == '__main__':
    cli.run(main)
