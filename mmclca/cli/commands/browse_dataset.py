# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/visualization/browse_dataset.py`` does."""

import sys
from pathlib import Path

import mmcv
from mmengine.dataset import Compose
from mmengine.registry import init_default_scope
from mmengine.utils import ProgressBar
from mmpretrain.registry import DATASETS, TRANSFORMS
from mmpretrain.visualization import UniversalVisualizer

from mmclca.configs import read_config, require_settings
from mmclca.datasets.image_cache import without_cache
from mmclca.visualization.figure_files import can_show
from mmclca.visualization.panels import draw_panels

from .. import plain_errors

# which of the images after each step are shown
MODES = dict(
    original=lambda steps: steps[:1],
    transformed=lambda steps: steps[-1:],
    concat=lambda steps: [steps[0], steps[-1]],
    pipeline=lambda steps: steps,
)


class RecordingCompose(Compose):
    """A pipeline that keeps the image of the last sample after each step.

    Args:
        transforms (list[dict]): Configs of the steps.
    """

    def __init__(self, transforms):
        super().__init__([TRANSFORMS.build(step) for step in transforms])
        self.images = []

    def __call__(self, data):
        self.images = list(images_of('original', data))
        for step in self.transforms:
            data = step(data)
            if data is None:
                return None
            name = type(step).__name__ if self.images else 'original'
            self.images += images_of(name, data)
        return data


def images_of(name, data):
    """Names and copies of the images in a sample; some steps make several."""
    image = data.get('img')
    if isinstance(image, list):
        for number, view in enumerate(image, start=1):
            yield f'{name} {number}', view.copy()
    elif image is not None:
        yield name, image.copy()


def build(settings):
    """A data set whose pipeline keeps its images, and that pipeline.

    Args:
        settings (dict): Its config; it may repeat or choose from another
            data set.
    """
    dataset = DATASETS.build(settings)
    inner = dataset
    while 'pipeline' not in settings:
        settings, inner = settings['dataset'], inner.dataset
    inner.pipeline = RecordingCompose(without_cache(settings['pipeline']))
    return dataset, inner.pipeline


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
    dataset, pipeline = build(settings)
    classes = dataset.metainfo.get('classes')
    number = min(number, len(dataset))
    bar = ProgressBar(number, file=sys.stderr)
    for index in range(number):
        sample = dataset[index]['data_samples']
        panels = MODES[mode](pipeline.images)
        if channel_order == 'BGR':
            panels = [(name, to_rgb(image)) for name, image in panels]
        name = file_of(sample, index)
        heading = f'{label_of(sample, classes)}\n{name}'
        yield name, draw_panels(panels, heading, 320 * rescale_factor)
        bar.update()


def browse(args):
    cfg = read_config(args.config, args.cfg_options)
    require_settings(cfg, f'{args.phase}_dataloader.dataset')
    init_default_scope('mmpretrain')
    shown = pictures(
        cfg[f'{args.phase}_dataloader'].dataset,
        args.show_number,
        args.mode,
        args.channel_order,
        args.rescale_factor,
    )
    window = UniversalVisualizer()
    for name, picture in shown:
        if args.output_dir:
            mmcv.imwrite(picture[..., ::-1], str(args.output_dir / name))
        if not args.not_show and can_show():
            window.show(picture, name, args.show_interval)


def main(args):
    with plain_errors(args.config):
        browse(args)
    print(f'\n{args.output_dir}' if args.output_dir else '')
