# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Warnings of ``fit`` about classes that are told without the plant.

``python tools/research/shortcut_warnings.py`` plants a background tone, a
camera or an image size for each class, and prints how often ``fit`` would
warn. In control runs, each photo has the tone, camera or size of a random
class. It also prints the figures for each dataset as it is.
"""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import fit_networks
import numpy as np
import pandas as pd
import torch
from frozen import DATASETS, photos
from PIL import Image

from mmclca.datasets.batches import Preparation
from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.datasets.photos import LabeledImages
from mmclca.datasets.photos.captures import Capture
from mmclca.datasets.synthetic_leaves.cultivars import (
    draw_leaf,
    make_cultivars,
)
from mmclca.evaluation.shortcut_probe import probe_cues
from mmclca.fitting.ignored_patches import read_ignored_patches
from mmclca.fitting.shortcut_record import Shortcut
from mmclca.fitting.shortcuts import MAX_ATTENDED, encode, probe_photos

NUM_RUNS = 20  # per source and shortcut
NUM_CLASSES, PER_CLASS = 5, 8
SIDE, BORDER = 256, 24  # pixels of planted photos
NOISE = 12  # deviation of background tones, gray levels
KINDS = 'tone', 'camera', 'size'
SOURCES = 'synthetic leaves', 'flower17', 'leaf40_white'
# warnings depend on the accuracy of the model: the strictest case
ACCURACY = 1.0


def main():
    rows = [
        run_once(source, cue, is_planted, seed)
        for source in SOURCES
        for cue in KINDS
        for is_planted in (True, False)
        for seed in range(NUM_RUNS)
    ]
    table = pd.DataFrame(rows)
    print(f'{len(table)} runs: warnings in percent')
    keys = table.columns.drop('warned').tolist()
    warned = 100 * table.groupby(keys).warned.mean()
    print(warned.unstack('is_planted').round(1))
    print((100 * table.groupby('is_planted').warned.mean()).round(1))
    for name, dataset in photos(DATASETS).items():
        training = dataset[dataset.split == 'train']
        names = [*map(str, training.label)]
        for shortcut in probe(
            LabeledImages.from_names([*training.path], names, name)
        ):
            print(
                f'{name}, {shortcut.source}: {100 * shortcut.accuracy:.0f}% '
                f'(chance {100 * shortcut.chance:.0f}%), '
                f'warned: {shortcut.is_far_above_chance(ACCURACY)}'
            )
    print_patches()


def print_patches():
    """Print the figures for the least attended patches, with ViT-Tiny.

    For false alarms, labels are shuffled.
    """
    (network,) = fit_networks.list_defaults(fit_networks.VIT)
    probe_model = fit_networks.build_probe(network)
    prepare = Preparation(probe_model.model._config)
    shuffled = []
    for name, dataset in photos(DATASETS).items():
        training = dataset[dataset.split == 'train']
        training = training.sample(frac=1, random_state=0)[:MAX_ATTENDED]
        paths = [*map(str, training.path)]
        rows = read_ignored_patches(probe_model.model, prepare, paths)
        cues = encode(rows)
        labels = torch.tensor(training.label.astype(int).to_numpy())
        measured = probe_patches(cues, labels)
        print(
            f'{name}, patches: {100 * measured.accuracy:.0f}% (chance '
            f'{100 * measured.chance:.0f}%), warned: '
            f'{measured.is_far_above_chance(ACCURACY)}'
        )
        for seed in range(NUM_RUNS):
            generator = torch.Generator().manual_seed(seed)
            order = torch.randperm(len(labels), generator=generator)
            random = probe_patches(cues, labels[order])
            shuffled.append(random.is_far_above_chance(ACCURACY))
    print(f'shuffled labels: warned in {sum(shuffled)} of {len(shuffled)}')


def probe_patches(cues, labels):
    """Probe cues (N, D) of photos in five folds."""
    splits = [*GroupedSplits(labels.tolist()).folds(5, seed=0)]
    groups = torch.arange(len(labels))
    probed = probe_cues(cues, labels, groups, splits)
    return Shortcut('patches', **vars(probed))


def probe(labeled):
    """Probe photos in five folds."""
    splits = GroupedSplits(labeled.labels).folds(5, seed=0)
    return probe_photos(labeled, torch.arange(len(labeled)), [*splits])


def run_once(source, cue, is_planted, seed):
    """Plant a shortcut, or assign it at random; return whether it is found."""
    random = np.random.RandomState(seed)
    images = read_images(source, random)
    labels = np.repeat(np.arange(NUM_CLASSES), PER_CLASS)
    assigned = labels if is_planted else random.permutation(labels)
    tones = np.linspace(30, 225, NUM_CLASSES)[random.permutation(NUM_CLASSES)]
    with TemporaryDirectory() as folder:
        paths = []
        for number, (image, value) in enumerate(
            zip(images, assigned, strict=True)
        ):
            if cue == 'tone':
                image = frame(image, tones[value] + NOISE * random.randn())
            elif cue == 'size':
                side = SIDE + 16 * int(value)
                image = image.resize((side, side))
            paths.append(str(Path(folder, f'{number}.jpg')))
            image.save(paths[-1], quality=90)
        captures = {}
        if cue == 'camera':
            captures = {
                path: Capture(camera=f'camera {value}')
                for path, value in zip(paths, assigned, strict=True)
            }
        labeled = LabeledImages.from_names(paths, [*map(str, labels)], source)
        labeled.captures.update(captures)
        expected = 'border' if cue == 'tone' else 'file'
        warned = any(
            shortcut.is_far_above_chance(ACCURACY)
            for shortcut in probe(labeled)
            if shortcut.source == expected
        )
    return dict(source=source, cue=cue, is_planted=is_planted, warned=warned)


def frame(image, tone):
    """Paint the border of an image in a gray tone."""
    framed = Image.new('RGB', image.size, (int(np.clip(tone, 0, 255)),) * 3)
    inner = image.crop((BORDER, BORDER, SIDE - BORDER, SIDE - BORDER))
    framed.paste(inner, (BORDER, BORDER))
    return framed


def read_images(source, random):
    """Return images of random classes of a source, class by class."""
    if source == SOURCES[0]:
        draw = partial(draw_synthetic, random=random)
        cultivars = make_cultivars(NUM_CLASSES, seed=random.randint(1000))
        return [draw(x) for x in cultivars for _ in range(PER_CLASS)]
    dataset = photos((source,))[source]
    counts = dataset.label.value_counts()
    labels = random.permutation(
        counts.index[counts >= PER_CLASS].sort_values()
    )
    images = []
    for label in labels[:NUM_CLASSES]:
        paths = dataset.path[dataset.label == label]
        for path in random.permutation(paths)[:PER_CLASS]:
            with Image.open(path) as image:
                images.append(image.convert('RGB').resize((SIDE, SIDE)))
    return images


def draw_synthetic(cultivar, random):
    """Draw a synthetic leaf."""
    generator = np.random.default_rng(random.randint(2**31))
    return Image.fromarray(draw_leaf(cultivar, generator, SIDE)[..., ::-1])


if __name__ == '__main__':
    main()
