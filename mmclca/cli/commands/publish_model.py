# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the weights of a checkpoint (EMA weights if it has them) with config
and class names, without optimizer state and log. The file name contains eight
digits of its SHA-256.

``python tools/model_converters/publish_model.py IN OUT``
"""

import sys
from contextlib import redirect_stdout
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.messages import did_you_mean, print_safe, warn

from ..listing import Listing

LISTING = Listing(
    'models', 'write the weights of a checkpoint without its state'
)


def add_arguments(parser):
    parser.add('in_file', 'path or URL of a checkpoint')
    parser.add(
        'out_file',
        'NAME.pth, NAME.safetensors, or NAME for both; _DATE-HASH is added',
        type=Path,
    )
    parser.flag('--no-ema', 'raw weights instead of EMA weights')
    parser.add(
        '--dataset-type', 'dataset type with the class names, e.g. ImageNet'
    )
    parser.add('--config', 'config for a checkpoint without one')


def list_class_names(checkpoint, dataset_type):
    """Return class names from a checkpoint or dataset type, or None."""
    from mmengine.registry import init_default_scope
    from mmpretrain.registry import DATASETS

    from mmclca.checkpoints.gate.stored_config import read_stored_classes

    classes = read_stored_classes(checkpoint)
    if dataset_type is None:
        return classes
    init_default_scope('mmpretrain')
    datasets = DATASETS
    dataset = dataset_type and datasets.get(dataset_type)
    if not dataset:
        raise Error(
            f'--dataset-type {dataset_type}: not a dataset of mmpretrain or '
            f'mmclca{did_you_mean(dataset_type, datasets.module_dict)}'
        )
    return classes or dataset.METAINFO.get('classes')


def publish(args):
    """Write the files; return their paths."""
    from mmclca.checkpoints.gate.stored_config import get_stored_text
    from mmclca.checkpoints.opening import open_checkpoint
    from mmclca.checkpoints.publishing import copy_weights, publish
    from mmclca.configs import read_config

    folder = args.out_file.parent
    if not folder.is_dir():
        raise FileNotFoundError(f'folder {folder} not found: create it first')
    checkpoint = open_checkpoint(args.in_file)
    config = get_stored_text(checkpoint)
    if args.config:
        config = read_config(args.config).pretty_text
    classes = list_class_names(checkpoint, args.dataset_type)
    weights = copy_weights(checkpoint, args.no_ema)
    if config is None:
        warn('no config stored; add --config CONFIG')
    if classes is None:
        warn('no class names stored; add --dataset-type TYPE')
    return publish(args.out_file, weights, config, classes)


def main(args):
    with redirect_stdout(sys.stderr):
        paths = publish(args)
    labels = dict.fromkeys(paths, 'Saved') | {Path(args.in_file): 'Input'}
    for path in filter(Path.is_file, [Path(args.in_file), *paths]):
        print_safe(
            f'{labels[path]:10} {path} ({path.stat().st_size / 1e6:.2f} MB)'
        )
