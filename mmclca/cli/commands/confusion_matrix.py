# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compute the confusion matrix on the test set: rows are true classes,
columns are predicted classes.

``python tools/analysis_tools/confusion_matrix.py CONFIG CHECKPOINT|RESULTS``
"""

from pathlib import Path

from mmclca.checkpoints.model_folder import is_checkpoint
from mmclca.utils.messages import print_safe, warn

from .. import model_files
from ..arguments import file_named
from ..listing import Listing

LISTING = Listing('analyze', 'compute the confusion matrix on the test set')


def add_arguments(parser):
    parser.share('config')
    parser.add(
        'ckpt_or_result',
        'checkpoint to test, or .pkl file of tools/test.py --out',
    )
    parser.add(
        '--out',
        'matrix file, .pkl (tensor) or .json (lists)',
        type=file_named('.pkl', '.json'),
    )
    parser.add('--show-path', 'picture to write', type=Path)
    parser.flag('--include-values', 'numbers in the picture')
    parser.add('--cmap', 'matplotlib color map', 'viridis', metavar='NAME')
    parser.share('--cfg-options')
    parser.set_defaults(device=None)


def matrix_of_checkpoint(args, cfg):
    """Test a checkpoint; return the matrix and the class names."""
    import torch

    from mmclca.datasets.batches import batches, build_dataset
    from mmclca.visualization.confusions import predict

    inferencer = model_files.load_inferencer(
        args, args.config, args.ckpt_or_result
    )
    dataset = build_dataset(cfg)
    read = batches(inferencer.model, dataset)
    matrix = predict(inferencer.model, read, inferencer.classes).matrix()
    return torch.as_tensor(matrix), inferencer.classes


def matrix_of_results(args, cfg):
    """Read predictions; return the matrix and the class names, or None."""
    from mmengine.evaluator import Evaluator
    from mmpretrain.evaluation import ConfusionMatrix

    from mmclca.evaluation.predictions import read_predictions

    results = read_predictions(args.ckpt_or_result, 'pred_score', 'gt_label')
    metric = ConfusionMatrix()
    metrics = Evaluator(metric).offline_evaluate(results)
    return metrics['confusion_matrix/result'], list_class_names(cfg)


def list_class_names(cfg):
    """Return the class names, or None without the test set."""
    from mmclca.datasets.batches import build_dataset

    try:
        dataset = build_dataset(cfg, pipeline=[])
    except OSError as error:
        warn(f'class numbers instead of names, test set: {error}')
        return None
    return dataset.metainfo.get('classes')


def draw(matrix, classes, include_values, cmap):
    """Draw the matrix with mmpretrain, enlarged for many class names."""
    from mmpretrain.evaluation import ConfusionMatrix

    figure = ConfusionMatrix.plot(
        matrix, include_values, cmap, classes=classes, show=False
    )
    side = min(max(10, 3 + 0.25 * len(matrix)), 60)
    figure.set_size_inches(side, side)
    figure.axes[0].tick_params(axis='x', labelrotation=90)
    return figure


def describe(matrix, classes):
    """Yield lines on the accuracy and the most confused classes."""
    right = matrix.diagonal().sum().item()
    yield f'Accuracy   {right} of {matrix.sum().item()} images correct'
    wrong = matrix.clone().fill_diagonal_(0)
    names = classes or [str(label) for label in range(len(matrix))]
    counts, places = wrong.flatten().topk(min(5, wrong.numel()))
    for count, position in zip(counts.tolist(), places.tolist(), strict=True):
        true, predicted = divmod(position, len(matrix))
        if count:
            yield f'Confused   {names[true]} as {names[predicted]}: {count}'


def write(matrix, out):
    import mmengine

    content = matrix.tolist() if out.suffix == '.json' else matrix
    mmengine.dump(content, out)


def main(args):
    from mmclca.configs import read_config
    from mmclca.visualization.figures import check_picture, save_figure

    source = args.ckpt_or_result
    if args.show_path:
        check_picture(args.show_path)
    cfg = read_config(args.config, args.cfg_options)
    count = matrix_of_results
    if is_checkpoint(source):
        count = matrix_of_checkpoint
    matrix, classes = count(args, cfg)
    print_safe(*describe(matrix, classes))
    if args.out:
        write(matrix, args.out)
        print_safe(f'Saved      {args.out}')
    if args.show_path:
        figure = draw(matrix, classes, args.include_values, args.cmap)
        save_figure(figure, args.show_path)
        print_safe(f'Saved      {args.show_path}')
