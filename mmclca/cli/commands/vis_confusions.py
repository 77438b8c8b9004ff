# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/visualization/vis_confusions.py`` does."""

from mmclca.visualization.batches import batches, dataset_of
from mmclca.visualization.confusions import draw_confusions, predict
from mmclca.visualization.figure_files import check_picture

from .. import plain_errors
from ..model_files import load, sort_files


@plain_errors()
def main(args):
    check_picture(args.out)
    config, checkpoint, _ = sort_files(args.files)
    inferencer = load(config, checkpoint, args.cfg_options, args.device)
    model = inferencer.model
    dataset = dataset_of(model._config, args.split)
    every = range(len(dataset))
    found = batches(model, dataset, every, args.batch_size)
    predictions = predict(model, found, inferencer.classes)
    draw_confusions(predictions, args.out, args.pairs, args.examples)
    print(args.out)
