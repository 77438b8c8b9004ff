# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/visualization/vis_tsne.py`` does."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from mmpretrain import get_model

from mmclca.checkpoints.stored import is_checkpoint
from mmclca.configs import read_config
from mmclca.visualization.batches import (
    batches,
    dataset_of,
    first_of_each_class,
)
from mmclca.visualization.tsne import draw_points, image_features, tsne

from .. import plain_errors
from ..model_files import load


def load_model(args):
    """The model, with weights where there are any."""
    config, checkpoint = args.config, args.checkpoint
    if checkpoint is None and is_checkpoint(config):
        config, checkpoint = None, config
    if checkpoint:
        return load(config, checkpoint, args.cfg_options, args.device).model
    print('no --checkpoint: weights are random', file=sys.stderr)
    cfg = read_config(config, args.cfg_options)
    return get_model(cfg, pretrained=False, device=args.device)


def choose(dataset, args):
    """Positions of the images to draw."""
    number = len(dataset.CLASSES)
    wanted = args.class_idx or range(min(number, args.max_num_class))
    wrong = [label for label in wanted if not 0 <= label < number]
    if wrong:
        raise ValueError(
            f'--class-idx {" ".join(map(str, wrong))}: the data have the '
            f'labels 0 to {number - 1}'
        )
    labels = dataset.get_gt_labels()
    return first_of_each_class(labels, args.max_num_samples, wanted)


def draw(args):
    torch.manual_seed(0)
    model = load_model(args)
    cfg = read_config(args.test_cfg) if args.test_cfg else model._config
    dataset = dataset_of(cfg)
    found = batches(model, dataset, choose(dataset, args), args.batch_size)
    features, labels = image_features(model, found, args.vis_stage)
    points = tsne(
        features,
        n_components=args.n_components,
        perplexity=args.perplexity,
        early_exaggeration=args.early_exaggeration,
        learning_rate=args.learning_rate,
        max_iter=args.n_iter,
        n_iter_without_progress=args.n_iter_without_progress,
        init=args.init,
    )
    folder = args.work_dir or Path('work_dirs', Path(args.config).stem)
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f'tsne_{args.vis_stage}.png'
    draw_points(points, labels, dataset.CLASSES, out, args.legend)
    return out


def main(args):
    with plain_errors():
        out = draw(args)
    print(out)
    if args.show:
        plt.figure().figimage(plt.imread(out), resize=True)
        plt.show()
