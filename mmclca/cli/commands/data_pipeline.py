# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/benchmark/data_pipeline.py`` does."""

import gc
import sys
import time
from copy import deepcopy
from pathlib import Path
from statistics import median

import torch
from mmengine.registry import DefaultScope
from mmengine.runner import Runner
from mmengine.utils import ProgressBar

from mmclca.benchmark import Setting
from mmclca.benchmark.machine import machine
from mmclca.benchmark.pages import line, machine_lines, table_head
from mmclca.configs import read_config, require_settings
from mmclca.datasets.image_cache import without_cache
from mmclca.engine.runner import set_loader_defaults

from .. import plain_errors
from ..benchmark import command_line

TITLES = (
    *('workers', 'first epoch', 'first, cached'),
    *('later', 'later, cached', 'speed-up'),
)


def loaders_of(cfg, workers):
    """Build the training loader as it is, and without the image cache.

    Args:
        cfg (mmengine.Config): The config.
        workers (int): Processes that load.

    Returns:
        dict[bool, DataLoader]: By whether images are cached.

    Raises:
        ValueError: If the config caches no images.
    """
    cfg = deepcopy(cfg)
    cfg.train_dataloader.num_workers = workers
    set_loader_defaults(cfg, no_pin_memory=False)
    plain = deepcopy(cfg.train_dataloader)
    plain.dataset.pipeline = without_cache(plain.dataset.pipeline)
    if plain == cfg.train_dataloader:
        raise ValueError(
            'the pipeline of train_dataloader has no mmclca.CacheImages, '
            'with and without which is timed: give a config that has it'
        )
    loaders = {False: plain, True: cfg.train_dataloader}
    with DefaultScope.overwrite_default_scope(cfg.default_scope):
        return {k: Runner.build_dataloader(v) for k, v in loaders.items()}


def images_per_second(loader):
    """Load an epoch."""
    start = time.perf_counter()
    images = sum(len(batch['inputs']) for batch in loader)
    return images / (time.perf_counter() - start)


def measure(loaders, epochs):
    """Load epochs, one with the cache after one without it.

    Args:
        loaders (dict[bool, DataLoader]): Of :func:`loaders_of`.
        epochs (int): Epochs after the first.

    Returns:
        dict[bool, list[float]]: Images per second of each epoch, by whether
        they are cached.
    """
    speeds = {False: [], True: []}
    progress = ProgressBar(2 * (epochs + 1), file=sys.stderr)
    for _ in range(epochs + 1):
        for cached, loader in loaders.items():
            speeds[cached].append(images_per_second(loader))
            progress.update()
    print(file=sys.stderr)
    return speeds


def table_line(workers, speeds):
    """The line of a number of workers."""
    plain, cached = speeds[False], speeds[True]
    later = median(plain[1:]), median(cached[1:])
    numbers = (plain[0], cached[0], *later)
    cells = [f'{number:.0f}' for number in numbers]
    return line([workers, *cells, f'{later[1] / later[0]:.1f}'])


def page(cfg, name, facts, lines):
    """The Markdown page of a table."""
    loader = cfg.train_dataloader
    steps = ', '.join(
        step['type'] for step in without_cache(loader.dataset.pipeline)
    )
    return '\n'.join(
        [
            '# The input pipeline, without a model',
            '',
            f'Images per second of the training data of `{name}` (batch '
            f'{loader.batch_size}; {steps}), with `mmclca.CacheImages` and '
            'without it. The first epoch starts the workers and fills the '
            'cache; of the later epochs, the median.',
            '',
            *machine_lines(facts),
            '',
            *lines,
            '',
        ]
    )


def main(args):
    torch.set_num_threads(1)
    with plain_errors(args.config):
        cfg = read_config(args.config, args.cfg_options)
        require_settings(cfg, 'train_dataloader.dataset.pipeline')
    facts = machine(Setting(), command_line(__file__))
    lines = table_head(TITLES)
    print(*machine_lines(facts), '', *lines, sep='\n', flush=True)
    for workers in args.workers:
        with plain_errors(args.config):
            loaders = loaders_of(cfg, workers)
        speeds = measure(loaders, args.epochs)
        del loaders
        gc.collect()  # the images of these loaders go, workers end
        lines.append(table_line(workers, speeds))
        print(lines[-1], flush=True)
    if args.out:
        text = page(cfg, Path(args.config).stem, facts, lines)
        args.out.write_text(text, encoding='utf-8')
