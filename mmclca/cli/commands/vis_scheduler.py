# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The curve of a learning rate: ``python
tools/visualization/vis_scheduler.py CONFIG``."""

import json
from pathlib import Path

from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_cfg_options, add_figure_arguments, positive

plt = lazy('matplotlib.pyplot')
configs = lazy('mmclca.configs')
recording = lazy('mmclca.engine.schedulers.recording')
figures = lazy('mmclca.visualization.figures')
batches = lazy('mmclca.datasets.batches')

NAMES = dict(lr='learning rate', momentum='momentum', wd='weight decay')


def parse_args():
    parser = Parser(
        description='Draw how the learning rate (momentum, weight decay) of a '
        'config changes in training, by its own schedulers; no model is '
        'built. Where layers have rates of their own, it is that of a '
        'parameter without a multiplier'
    )
    parser.add('config', 'path or name of a config')
    parser.add(
        '-p --parameter',
        'what to draw',
        'lr',
        choices=['lr', 'momentum', 'wd'],
    )
    parser.add(
        '-d --dataset-size',
        'number of training images; without, the data set is opened and '
        'counted',
        type=positive,
    )
    parser.add(
        '-n --ngpus', 'processes that share the images', 1, type=positive
    )
    parser.add('-s --save-path', 'picture to write', type=Path)
    parser.add(
        '--log-level',
        "of mmengine's logger",
        'WARNING',
        choices=['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'],
    )
    parser.flag('--not-show', 'open no window')
    add_figure_arguments(parser)
    add_cfg_options(parser)
    return parser.parse_args()


def count_images(cfg):
    """Images of the training set, none of them opened."""
    try:
        return len(batches.dataset_of(cfg, 'train', pipeline=[]))
    except OSError as error:
        raise ValueError(
            f'the training set is not here ({error}); give the number of its '
            'images: --dataset-size N'
        ) from error


def count_batches(loader, num_images, ngpus):
    """Batches of an epoch in each of ``ngpus`` processes."""
    images = -(-num_images // ngpus)
    batch_sampler = loader.get('batch_sampler') or {}
    if loader.get('drop_last') or batch_sampler.get('drop_last'):
        return max(images // loader.batch_size, 1)
    return -(-images // loader.batch_size)


def draw(axes, values, parameter, per_epoch):
    """Draw values by iteration, and by epoch where training counts these."""
    axes.step(range(len(values)), values, where='post', color='#1b6ca8')
    axes.set(ylabel=NAMES[parameter], xlabel='iteration')
    if per_epoch:
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position('top')
        below = axes.secondary_xaxis(
            'bottom',
            functions=(lambda x: x / per_epoch, lambda x: x * per_epoch),
        )
        below.set_xlabel('epoch')


def iterations_an_epoch(cfg, num_images, ngpus):
    """None where the training counts in iterations."""
    if 'max_epochs' not in cfg.train_cfg:
        return None
    loader = cfg.train_dataloader
    num_images = num_images or count_images(cfg)
    per_epoch = count_batches(loader, num_images, ngpus)
    print(f'{num_images} training images, {per_epoch} iterations an epoch')
    return per_epoch


def title_of(config, parameter, wrapper):
    """Says so where layers have other rates than the one drawn."""
    title = f'{Path(config).stem}: {NAMES[parameter]}'
    constructor = wrapper.get('constructor')
    own = f'\nlayers have shares of it: {constructor}' if constructor else ''
    return title + own


def visualize(args):
    """Draw what the command line asks for; gives the values."""
    cfg = configs.read_config(args.config, args.cfg_options)
    configs.require_settings(
        cfg,
        'optim_wrapper.optimizer',
        'train_cfg',
        'train_dataloader.batch_size',
    )
    print('param_scheduler:', json.dumps(cfg.get('param_scheduler'), indent=1))
    per_epoch = iterations_an_epoch(cfg, args.dataset_size, args.ngpus)
    # between epochs mmengine waits for seconds: iterations are of one
    num_batches = per_epoch or cfg.train_cfg.max_iters
    values = recording.recorded_values(
        cfg, num_batches, args.parameter, args.log_level
    )
    title = title_of(args.config, args.parameter, cfg.optim_wrapper)
    figure, axes = figures.new_axes(
        args.style, args.window_size, args.title or title
    )
    draw(axes, values, args.parameter, per_epoch)
    if args.save_path:
        figure.savefig(args.save_path)
        print(f'{len(values)} iterations drawn: {args.save_path}')
    return values


def main(args):
    with plain_errors(args.config):
        if args.save_path:
            figures.check_picture(args.save_path)
        elif args.not_show or not figures.can_show():
            raise ValueError('no window to draw in: give --save-path FILE')
        visualize(args)
    if not args.not_show and figures.can_show():
        plt.show()
