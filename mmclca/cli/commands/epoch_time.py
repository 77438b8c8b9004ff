# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/benchmark/epoch_time.py`` does."""

import runpy
import time
from pathlib import Path
from statistics import median

import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmpretrain.models.backbones import VisionTransformer

from mmclca.benchmark import Setting
from mmclca.benchmark.machine import machine
from mmclca.benchmark.memory import peak_so_far
from mmclca.benchmark.pages import machine_lines
from mmclca.configs import merge_options
from mmclca.datasets.image_cache import without_cache
from mmclca.engine.runner import (
    build_runner,
    set_loader_defaults,
    set_up_run,
    use_amp,
    use_compile,
)

from .. import plain_errors
from ..benchmark import command_line
from ..start import starting

CROPS = ('RandomCrop', 'CenterCrop')


class EpochTimeHook(Hook):
    """Notes when training begins, when each epoch and the test end, and on
    how many images it trains."""

    priority = 'LOWEST'

    def __init__(self):
        self.marks = []
        self.epochs = []
        self.images = 0

    def before_train_epoch(self, runner):
        self.marks.append(_now())

    def after_train_iter(self, runner, batch_idx, data_batch, outputs):
        self.images += len(data_batch['inputs'])

    def after_train_epoch(self, runner):
        self.epochs.append(_now() - self.marks[-1])

    def after_val_epoch(self, runner, metrics=None):
        self.end = _now()
        self.metrics = metrics

    @property
    def seconds(self):
        """float: From the start of the first epoch to the end of the test."""
        return self.end - self.marks[0]


def _now():
    """The time when all that was asked of a GPU is done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def draw_leaves(tool, folder, size):
    """Draw as many leaves as Cotton80 has, unless it was done before.

    Args:
        tool (Path): The tool that draws them.
        folder (str): Where.
        size (int): Their side in pixels.
    """
    splits = '--val-fraction 0.17 --test-fraction 0.5 --layout ultra-fgvc'
    options = f'--classes 80 --per-class 6 --size {size} {splits}'.split()
    if (Path(folder) / 'test.csv').exists():
        return
    runpy.run_path(str(tool))['main']([folder, *options])


def set_image_size(cfg, size):
    """Have a config train and test on images of another size."""
    cfg.model.backbone.img_size = size
    for loader in (cfg.train_dataloader, cfg.val_dataloader):
        pipeline = loader.dataset.pipeline
        for step in without_cache(pipeline) + pipeline:
            if step['type'] in CROPS:
                step['crop_size'] = size
            elif step['type'] == 'Resize':
                step['scale'] = (int(size / 0.875),) * 2


def set_arch(cfg, arch):
    """Have a config train a ViT of another size."""
    cfg.model.backbone.arch = arch
    channels = VisionTransformer.arch_zoo[arch]['embed_dims']
    cfg.model.head.in_channels = channels


def set_length(cfg, epochs):
    """Have a config train some epochs, then test once and save once."""
    cfg.train_cfg.update(max_epochs=epochs, val_interval=epochs)
    cfg.default_hooks.checkpoint.interval = epochs


def set_data(cfg, leaves, workers, cache):
    for loader in (cfg.train_dataloader, cfg.val_dataloader):
        if leaves:
            loader.dataset.data_root = leaves
        if workers is not None:
            loader.num_workers = workers
        if not cache:
            pipeline = loader.dataset.pipeline
            loader.dataset.pipeline = without_cache(pipeline)


def read_config(path, own_data):
    """Read a config that can be timed.

    Args:
        path (str): Its path.
        own_data (bool): Whether on its own data set.

    Raises:
        ValueError: If it has no validation, or drawn leaves cannot take
            the place of its images.
    """
    cfg = Config.fromfile(path)
    names = ('train_dataloader', 'val_dataloader')
    missing = [name for name in names if not cfg.get(name)]
    if missing:
        raise ValueError(
            f'{path} has no {" and no ".join(missing)}: a run trains, and '
            'ends with a test on the data of val_dataloader'
        )
    data = [cfg[name].dataset.get('dataset') for name in names]
    if not own_data and data != ['cotton80', 'cotton80']:
        raise ValueError(
            f'{path} is not of Cotton80 (mmclca.UltraFGVC with '
            "dataset='cotton80'), for which leaves are drawn: use --own-data"
        )
    return cfg


def set_up(args):
    """The config of a run.

    Args:
        args (argparse.Namespace): The command line's.
    """
    cfg = read_config(args.config, args.own_data)
    cfg.load_from = None
    set_length(cfg, args.epochs)
    leaves = None if args.own_data else args.leaves
    if args.img_size:
        set_image_size(cfg, args.img_size)
    if args.arch:
        set_arch(cfg, args.arch)
    set_data(cfg, leaves, args.workers, not args.no_cache)
    merge_options(cfg, args.cfg_options)
    set_up_run(cfg, args.config, args.work_dir, 'none', 0)
    if args.amp != 'none':
        use_amp(cfg, args.amp)
    if args.compile:
        use_compile(cfg)
    set_loader_defaults(cfg, no_pin_memory=False)
    return cfg


def report(times, runner):
    """What was measured, as lines."""
    first, *later = times.epochs
    top1 = times.metrics['accuracy/top1']
    return [
        f'first epoch to end of test: {times.seconds:.2f} s',
        f'first epoch: {first:.2f} s',
        *([speed(later, times.images / len(times.epochs))] if later else []),
        f'peak memory: {peak_so_far():.0f} MiB',
        f'tested on {len(runner.val_dataloader.dataset)} images: '
        f'{top1:.1f} % top-1',
    ]


def speed(epochs, images):
    """Seconds of some epochs of that many images, and images per second."""
    seconds = median(epochs)
    return (
        f'later epochs: {seconds:.3f} s (median of {len(epochs)}), '
        f'{images / seconds:.1f} images/s'
    )


def main(args, draw):
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    facts = machine(Setting(device), command_line(__file__))
    with plain_errors(args.config):
        cfg = set_up(args)
    if not args.own_data:
        draw_leaves(draw, args.leaves, args.leaf_size)
    with plain_errors(args.config):
        runner = build_runner(cfg)
    times = EpochTimeHook()
    runner.register_hook(times)
    with starting(args.config, runner):
        runner.train()
    print('', *machine_lines(facts), '', *report(times, runner), sep='\n')
