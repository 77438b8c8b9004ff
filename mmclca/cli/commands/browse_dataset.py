# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Show the images of a dataset with their classes, before and after the steps
of the pipeline.

``python tools/visualization/browse_dataset.py CONFIG``
"""

import sys
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.messages import print_safe, track

from ..arguments import positive
from ..listing import Listing

LISTING = Listing('data', 'show images before and after the pipeline')

# images shown, selected from the images after each step
MODES = dict(
    original=lambda steps: steps[:1],
    transformed=lambda steps: steps[-1:],
    concat=lambda steps: [steps[0], steps[-1]],
    pipeline=lambda steps: steps,
)


def add_arguments(parser):
    parser.share('config')
    parser.add(
        '-o --output-dir',
        'output folder, required without a display',
        type=Path,
    )
    parser.flag('--not-show', 'no window')
    parser.add(
        '-p --phase',
        'split to show',
        'train',
        choices=['train', 'test', 'val'],
    )
    parser.add(
        '-n --show-number',
        'images to show (default: all)',
        sys.maxsize,
        type=positive,
    )
    parser.add(
        '-i --show-interval', 'seconds per image in the window', 2, type=float
    )
    parser.add(
        '-m --mode',
        'image from disk, after the pipeline, both, or after every step',
        'transformed',
        choices=MODES,
    )
    parser.share('-r --rescale-factor')
    parser.add(
        '-c --channel-order',
        'channel order in the pipeline',
        'BGR',
        choices=['BGR', 'RGB'],
    )
    parser.share('--cfg-options')


def recording_dataset(settings):
    """Build a dataset, and a list of step names and images per sample."""
    from mmpretrain.registry import DATASETS

    from mmclca.building import config_errors
    from mmclca.datasets import match_by_name
    from mmclca.datasets.batches import without_cache

    inner = settings = match_by_name(settings)
    while 'pipeline' not in inner:
        inner = inner['dataset']
    inner['pipeline'] = without_cache(inner['pipeline'])
    with config_errors():
        dataset = inner = DATASETS.build(settings)
    while hasattr(inner, 'dataset'):
        inner = inner.dataset
    steps, images = inner.pipeline.transforms, []

    def pipeline(data):
        images[:] = copy_images('original', data)
        for step in steps:
            data = step(data)
            if data is None:  # mmengine takes another sample
                return None
            name = type(step).__name__ if images else 'original'
            images.extend(copy_images(name, data))
        return data

    inner.pipeline = pipeline
    return dataset, images


def copy_images(name, data):
    """Return name and copy of each image in a sample."""
    image = data.get('img')
    if isinstance(image, list):
        return [
            (f'{name} {n}', view.copy()) for n, view in enumerate(image, 1)
        ]
    return [] if image is None else [(name, image.copy())]


def describe_labels(sample, classes):
    """Describe the labels of a sample, '' without labels."""
    labels = sample.gt_label.tolist() if 'gt_label' in sample else []
    named = [f'{classes[i]} ({i})' if classes else f'{i}' for i in labels]
    return ', '.join(named)


def picture_name(sample, index):
    """Return a picture name; the index separates images with equal names."""
    path = sample.get('img_path')
    return f'{index:05}_{Path(path).stem}.png' if path else f'{index:05}.png'


def to_rgb(image, channel_order):
    """Convert BGR to RGB; keep RGB and gray images."""
    swapped = channel_order == 'BGR' and image.ndim == 3
    return image[..., ::-1] if swapped else image


def draw_samples(settings, args):
    """Yield file names and RGB pictures."""
    from mmclca.building import config_errors
    from mmclca.visualization.figures import side_by_side

    dataset, images = recording_dataset(settings)
    classes = dataset.metainfo.get('classes')
    number = min(args.show_number, len(dataset))
    for index in track(range(number), 'Images'):
        with config_errors():  # the steps of the pipeline
            sample = dataset[index]['data_samples']
        steps = [
            (name, to_rgb(image, args.channel_order))
            for name, image in MODES[args.mode](images)
        ]
        name = picture_name(sample, index)
        heading = f'{describe_labels(sample, classes)}\n{name}'
        yield name, side_by_side(steps, heading, args.rescale_factor)


def browse(args):
    import mmcv
    from mmengine.registry import init_default_scope
    from mmpretrain.visualization import UniversalVisualizer

    from mmclca.configs import read_config, require_settings
    from mmclca.visualization.figures import can_show

    has_window = not args.not_show and can_show()
    if not (args.output_dir or has_window):
        raise Error('no display found: add --output-dir FOLDER')
    cfg = read_config(args.config, args.cfg_options)
    require_settings(cfg, f'{args.phase}_dataloader.dataset')
    init_default_scope('mmpretrain')
    window = UniversalVisualizer()
    settings = cfg[f'{args.phase}_dataloader'].dataset
    for name, picture in draw_samples(settings, args):
        if args.output_dir:
            mmcv.imwrite(picture[..., ::-1], str(args.output_dir / name))
        if has_window:
            window.show(picture, name, args.show_interval)


def main(args):
    browse(args)
    if args.output_dir:
        print_safe(f'Saved      {args.output_dir}')
