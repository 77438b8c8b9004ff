# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Make a checkpoint small and safe to hand on: ``python
tools/model_converters/publish_model.py IN OUT``."""

import datetime
import hashlib
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

from mmclca.utils.atomic_write import replace_bytes
from mmclca.utils.lazy import lazy
from mmclca.version import __version__

from .. import Parser, plain_errors

checkpoints = lazy('mmclca.checkpoints')
downloading = lazy('mmclca.checkpoints.downloading')
stored = lazy('mmclca.checkpoints.stored')
writing = lazy('mmclca.checkpoints.writing')
configs = lazy('mmclca.configs')
registry = lazy('mmengine.registry')
mmpretrain_registry = lazy('mmpretrain.registry')
safetensors_torch = lazy('safetensors.torch')
torch = lazy('torch')


def parse_args():
    parser = Parser(
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


def weights_of(checkpoint, no_ema):
    """Tensors by name, each on the CPU with memory of its own.

    mmengine stores the average where a model looks for its weights, and what
    was trained beside it.
    """
    weights = dict(checkpoints.releases.weights_of(checkpoint))
    trained = {
        key.removeprefix('module.'): value
        for key, value in checkpoint.get('ema_state_dict', {}).items()
        if key.startswith('module.')
    }
    if trained:
        taken = 'weights as trained' if no_ema else 'moving average (EMA)'
        print(f'the checkpoint has two sets of weights; taken: {taken}')
    if no_ema:
        weights.update(trained)
    return {
        key: value.detach().cpu().clone(memory_format=torch.contiguous_format)
        for key, value in weights.items()
        if isinstance(value, torch.Tensor)
    }


def text_of(checkpoint, config):
    """The config as text, None where there is none."""
    if config:
        return configs.read_config(config).pretty_text
    return stored.stored_text(checkpoint)


def classes_of(checkpoint, dataset_type):
    """Names of the classes, None where there are none."""
    classes = stored.stored_classes(checkpoint)
    if classes is not None or dataset_type is None:
        return classes
    registry.init_default_scope('mmpretrain')
    dataset = mmpretrain_registry.DATASETS.get(dataset_type)
    if dataset is None:
        raise ValueError(
            f'--dataset-type {dataset_type} is no data set of mmpretrain or '
            'mmclca'
        )
    return dataset.METAINFO.get('classes')


def warn_of_missing(text, classes):
    if text is None:
        print(
            'no config is stored: the model is not built without one; give '
            '--config CONFIG',
            file=sys.stderr,
        )
    if classes is None:
        print(
            'no class names are stored: predictions will be numbers; give '
            '--dataset-type TYPE, or publish a checkpoint of tools/train.py',
            file=sys.stderr,
        )


def safetensors_file(weights, text, classes):
    """The bytes of a file that holds nothing but tensors and texts."""
    metadata = dict(format='pt', mmclca_version=__version__)
    if text is not None:
        metadata['config'] = text
    if classes is not None:
        metadata['classes'] = json.dumps(list(classes), ensure_ascii=False)
    return safetensors_torch.save(weights, metadata)


def checkpoint_file(weights, text, classes):
    return writing.checkpoint_bytes(weights, text, classes)


WRITERS = {'.pth': checkpoint_file, '.safetensors': safetensors_file}


def split_name(out_file):
    """A path without ending, and the endings to write."""
    if out_file.suffix in WRITERS:
        return out_file.with_suffix(''), [out_file.suffix]
    return out_file, list(WRITERS)


def write(name, ending, data):
    """Write a file whose name has date and hash; gives its path.

    Raises:
        FileExistsError: If it is there already.
    """
    digest = hashlib.sha256(data).hexdigest()[:8]
    date = datetime.date.today().strftime('%Y%m%d')
    path = name.with_name(f'{name.name}_{date}-{digest}{ending}')
    if path.exists():
        raise FileExistsError(f'{path} is there already; it is not written')
    replace_bytes(path, data)
    return path


def publish(in_file, out_file, no_ema, dataset_type, config):
    """Write the files; gives their paths."""
    name, endings = split_name(out_file)
    if not name.parent.is_dir():
        raise FileNotFoundError(f'there is no folder {name.parent}: make it')
    checkpoint = downloading.open_checkpoint(in_file)
    text = text_of(checkpoint, config)
    classes = classes_of(checkpoint, dataset_type)
    weights = weights_of(checkpoint, no_ema)
    warn_of_missing(text, classes)
    return [
        write(name, ending, WRITERS[ending](weights, text, classes))
        for ending in endings
    ]


def megabytes(path):
    return f'{Path(path).stat().st_size / 1e6:.2f} MB'


def main(args):
    in_file = args.in_file
    with plain_errors(in_file), redirect_stdout(sys.stderr):
        paths = publish(**vars(args))
    if Path(in_file).is_file():
        print(f'{in_file}: {megabytes(in_file)}')
    for path in paths:
        print(f'{path}: {megabytes(path)}')
