# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train as tools/train.py does, by the clock.

python tools/benchmark/epoch_time.py

Seconds from the start of the first epoch to the end of the test that follows
the last one, seconds of each epoch, images per second, peak memory. Without
options this is the cell of the CLCA paper on Cotton80: ViT-B/16, 448 px, keep
rate 0.1, 240 images, 50 epochs, one test on 240; leaves of that many are
drawn, and the weights are random. On a GPU it trains in bf16.
"""

import argparse
import resource
import runpy
import sys
import time
from pathlib import Path
from statistics import median

import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmpretrain.models.backbones import VisionTransformer

from mmclca.benchmark import Setting
from mmclca.benchmark.checks import check_img_size
from mmclca.benchmark.machine import machine
from mmclca.benchmark.options import command_line, positive, whole
from mmclca.benchmark.pages import machine_lines
from mmclca.datasets.image_cache import without_cache
from mmclca.utils.command_line import add_cfg_options, merge_options
from mmclca.utils.runs import (
    build_runner,
    set_loader_defaults,
    set_up_run,
    use_amp,
    use_compile,
)

ROOT = Path(__file__).resolve().parents[2]
CONFIG = 'clca-evit-kr10_deit3-base-p16_1xb32-50e_cotton80-448px.py'
DRAW = ROOT / 'tools/dataset_converters/synthetic_leaves.py'
CROPS = ('RandomCrop', 'CenterCrop')
# whose layers are those that the configs reduce in
DEEP = sorted(
    name
    for name, settings in VisionTransformer.arch_zoo.items()
    if settings['num_layers'] >= 12
)


def parse_args(argv):
    parser = argparse.ArgumentParser(
        description=__doc__.partition('\n\n')[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        'config',
        nargs='?',
        default=str(ROOT / 'configs/clca' / CONFIG),
        help='path of the config (default: that cell)',
    )
    parser.add_argument(
        '--own-data',
        action='store_true',
        help="use the config's data set; otherwise it has to be of Cotton80, "
        'for which leaves are drawn',
    )
    parser.add_argument(
        '--leaves',
        metavar='FOLDER',
        help='where they are, or are drawn (default: '
        'data/drawn_cotton80_SIZEpx)',
    )
    parser.add_argument(
        '--leaf-size',
        type=positive,
        default=800,
        help='their side in pixels, where they are drawn '
        '(default: %(default)s)',
    )
    add_model(parser)
    parser.add_argument(
        '--no-cache', action='store_true', help='decode in each epoch'
    )
    parser.add_argument('--work-dir', default='work_dirs/epoch_time')
    add_cfg_options(parser)
    args = parser.parse_args(argv)
    if args.leaves is None:
        args.leaves = f'data/drawn_cotton80_{args.leaf_size}px'
    if args.img_size:
        check_img_size(parser, args.img_size)
    if args.amp != 'none' and not torch.cuda.is_available():
        parser.error(f'--amp {args.amp} needs a GPU: without one --amp none')
    return args


def add_model(parser):
    parser.add_argument('--epochs', type=positive, default=50)
    parser.add_argument(
        '--arch',
        choices=DEEP,
        metavar='NAME',
        help='of VisionTransformer in MMPretrain, one of %(choices)s',
    )
    parser.add_argument(
        '--img-size', type=positive, help='side of an image in pixels'
    )
    parser.add_argument(
        '--amp',
        choices=['none', 'fp16', 'bf16'],
        default='bf16' if torch.cuda.is_available() else 'none',
        help='automatic mixed precision (default: %(default)s)',
    )
    parser.add_argument(
        '--compile', action='store_true', help='compile the model'
    )
    parser.add_argument(
        '--workers', type=whole, help='processes that load (default: 4)'
    )


class Watch(Hook):
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


def draw_leaves(folder, size):
    """Draw as many leaves as Cotton80 has, unless it was done before.

    Args:
        folder (str): Where.
        size (int): Their side in pixels.
    """
    splits = '--val-fraction 0.17 --test-fraction 0.5 --layout ultra-fgvc'
    options = f'--classes 80 --per-class 6 --size {size} {splits}'.split()
    if (Path(folder) / 'test.csv').exists():
        return
    if runpy.run_path(str(DRAW))['main']([folder, *options]):
        raise SystemExit(1)


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
        ValueError: If it has no validation, or drawn leaves cannot stand in
            for its images.
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


def peak_memory():
    """MiB at the most: of the GPU, or else of this process."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / (2**20 if sys.platform == 'darwin' else 2**10)


def report(watch, runner):
    """What was measured, as lines."""
    first, *later = watch.epochs
    top1 = watch.metrics['accuracy/top1']
    return [
        f'first epoch to end of test: {watch.seconds:.2f} s',
        f'first epoch: {first:.2f} s',
        *([speed(later, watch.images / len(watch.epochs))] if later else []),
        f'peak memory: {peak_memory():.0f} MiB',
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


def main(argv=None):
    args = parse_args(argv)
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    facts = machine(Setting(device), command_line(__file__, argv))
    cfg = set_up(args)
    if not args.own_data:
        draw_leaves(args.leaves, args.leaf_size)
    runner = build_runner(cfg)
    watch = Watch()
    runner.register_hook(watch)
    runner.train()
    print('', *machine_lines(facts), '', *report(watch, runner), sep='\n')


if __name__ == '__main__':
    main()
