# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/visualization/vis_scheduler.py`` does."""

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn

from mmclca.configs import read_config, require_settings
from mmclca.visualization.batches import dataset_of
from mmclca.visualization.figure_files import can_show, check_picture, new_axes

from .. import plain_errors

# of mmengine's Runner, none of which is needed
HOOKS = ('runtime_info', 'timer', 'sampler_seed', 'logger', 'checkpoint')
NAMES = dict(lr='learning rate', momentum='momentum', wd='weight decay')


class OneParameter(BaseModel):
    """Has a parameter for an optimizer, and learns nothing."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, inputs, data_samples=None, mode='tensor'):
        return inputs

    def train_step(self, data, optim_wrapper):
        optim_wrapper.step()  # schedulers count the steps
        return {}


class Batches(list):
    """What a loop reads of a data loader; an infinite one is iterated anew."""

    metainfo = {}

    @property
    def dataset(self):
        return self


class RecordHook(Hook):
    """Notes the value that each iteration is trained with.

    Args:
        parameter (str): 'lr', 'momentum' or 'wd'.
    """

    def __init__(self, parameter):
        self.parameter = parameter
        self.values = []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.values.append(value_of(runner.optim_wrapper, self.parameter))


def value_of(optim_wrapper, parameter):
    if parameter == 'wd':
        return optim_wrapper.param_groups[0].get('weight_decay', 0)
    if parameter == 'momentum':
        return optim_wrapper.get_momentum()['momentum'][0]
    return optim_wrapper.get_lr()['lr'][0]


def count_images(cfg):
    """Images of the training set, none of them opened."""
    try:
        return len(dataset_of(cfg, 'train', pipeline=[]))
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


def train(cfg, num_batches, parameter, log_level):
    """Go through a training without images and model; gives the values of
    all iterations."""
    record = RecordHook(parameter)
    with tempfile.TemporaryDirectory() as work_dir:
        runner = Runner(
            model=OneParameter(),
            work_dir=work_dir,
            train_dataloader=Batches(range(num_batches)),
            train_cfg=cfg.train_cfg,
            optim_wrapper=dict(
                type='OptimWrapper', optimizer=cfg.optim_wrapper.optimizer
            ),
            param_scheduler=cfg.get('param_scheduler'),
            default_hooks=dict.fromkeys(HOOKS),
            custom_hooks=[record],
            default_scope=cfg.get('default_scope', 'mmpretrain'),
            log_level=log_level,
        )
        runner.train()
    return record.values


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
    cfg = read_config(args.config, args.cfg_options)
    require_settings(
        cfg,
        'optim_wrapper.optimizer',
        'train_cfg',
        'train_dataloader.batch_size',
    )
    print('param_scheduler:', json.dumps(cfg.get('param_scheduler'), indent=1))
    per_epoch = iterations_an_epoch(cfg, args.dataset_size, args.ngpus)
    # between epochs mmengine waits for seconds: iterations are of one
    num_batches = per_epoch or cfg.train_cfg.max_iters
    values = train(cfg, num_batches, args.parameter, args.log_level)
    title = title_of(args.config, args.parameter, cfg.optim_wrapper)
    figure, axes = new_axes(args.style, args.window_size, args.title or title)
    draw(axes, values, args.parameter, per_epoch)
    if args.save_path:
        figure.savefig(args.save_path)
        print(f'{len(values)} iterations drawn: {args.save_path}')
    return values


def main(args):
    with plain_errors(args.config):
        if args.save_path:
            check_picture(args.save_path)
        elif args.not_show or not can_show():
            raise ValueError('no window to draw in: give --save-path FILE')
        visualize(args)
    if not args.not_show and can_show():
        plt.show()
