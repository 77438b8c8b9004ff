# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Look at a data set: ``python tools/visualization/browse_dataset.py
CONFIG``."""

import sys
from pathlib import Path

from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_cfg_options, check_window, positive

configs = lazy('mmclca.configs')
figure_files = lazy('mmclca.visualization.figure_files')
visualization_panels = lazy('mmclca.visualization.panels')
mmcv = lazy('mmcv')
registry = lazy('mmengine.registry')
utils = lazy('mmengine.utils')
pipeline_steps = lazy('mmclca.visualization.pipeline_steps')
visualization = lazy('mmpretrain.visualization')

# which of the images after each step are shown
MODES = dict(
    original=lambda steps: steps[:1],
    transformed=lambda steps: steps[-1:],
    concat=lambda steps: [steps[0], steps[-1]],
    pipeline=lambda steps: steps,
)


def parse_args():
    parser = Parser(
        description='Show the images of a data set with their classes, as '
        'they are on disk and as the steps of the pipeline make them'
    )
    parser.add('config', 'path or name of a config')
    parser.add(
        '-o --output-dir',
        'folder to write pictures to; needed where there is no display',
        type=Path,
    )
    parser.flag('--not-show', 'open no window')
    parser.add(
        '-p --phase',
        'which data set',
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
        '-i --show-interval', 'seconds that a window stays', 2, type=float
    )
    parser.add(
        '-m --mode',
        '"original": from disk; "transformed": as the model gets it, before '
        'it is normalized; "concat": both; "pipeline": after every step',
        'transformed',
        choices=MODES,
    )
    parser.add(
        '-r --rescale-factor',
        'of the size at which images are drawn, 320 px high by default',
        1.0,
    )
    parser.add(
        '-c --channel-order',
        'of the images in the pipeline',
        'BGR',
        choices=['BGR', 'RGB'],
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    if args.rescale_factor <= 0:
        parser.error('--rescale-factor must be above 0')
    if not args.output_dir:
        check_window(parser, 'give --output-dir FOLDER', args.not_show)
    return args


def label_of(sample, classes):
    """Names of the classes of a sample; nothing where it has none."""
    if 'gt_label' not in sample:
        return ''
    labels = sample.gt_label.tolist()
    named = [f'{classes[i]} ({i})' if classes else f'{i}' for i in labels]
    return ', '.join(named)


def file_of(sample, index):
    """Name of the picture of a sample; images of two classes may share one."""
    path = sample.get('img_path')
    return f'{index:05}_{Path(path).stem}.png' if path else f'{index:05}.png'


def to_rgb(image):
    """A grey image as it is, the channels of others in reverse."""
    return image[..., ::-1] if image.ndim == 3 else image


def pictures(settings, number, mode, channel_order, rescale_factor):
    """Yield file names and RGB pictures."""
    dataset, pipeline = pipeline_steps.with_recorded_steps(settings)
    classes = dataset.metainfo.get('classes')
    number = min(number, len(dataset))
    bar = utils.ProgressBar(number, file=sys.stderr)
    for index in range(number):
        sample = dataset[index]['data_samples']
        panels = MODES[mode](pipeline.images)
        if channel_order == 'BGR':
            panels = [(name, to_rgb(image)) for name, image in panels]
        name = file_of(sample, index)
        heading = f'{label_of(sample, classes)}\n{name}'
        yield (
            name,
            visualization_panels.draw_panels(
                panels, heading, 320 * rescale_factor
            ),
        )
        bar.update()


def browse(args):
    cfg = configs.read_config(args.config, args.cfg_options)
    configs.require_settings(cfg, f'{args.phase}_dataloader.dataset')
    registry.init_default_scope('mmpretrain')
    shown = pictures(
        cfg[f'{args.phase}_dataloader'].dataset,
        args.show_number,
        args.mode,
        args.channel_order,
        args.rescale_factor,
    )
    window = visualization.UniversalVisualizer()
    for name, picture in shown:
        if args.output_dir:
            mmcv.imwrite(picture[..., ::-1], str(args.output_dir / name))
        if not args.not_show and figure_files.can_show():
            window.show(picture, name, args.show_interval)


def main(args):
    with plain_errors(args.config):
        browse(args)
    print(f'\n{args.output_dir}' if args.output_dir else '')
