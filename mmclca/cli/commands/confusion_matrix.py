# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compute the confusion matrix on the test set: rows are true classes,
columns are predicted classes.

``python tools/analysis_tools/confusion_matrix.py CONFIG CHECKPOINT|RESULTS``
"""

from pathlib import Path

from mmclca.checkpoints.fitted import is_checkpoint
from mmclca.utils.messages import print_safe, warn

from .. import Parser, model_files, usage_errors
from ..arguments import file_named
from ..packages import (
    configs,
    datasets,
    evaluation,
    mmengine,
    mmpretrain,
    torch,
    visualization,
)


def parse_args():
    parser = Parser(__doc__)
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
    return parser.parse_args()


def matrix_of_checkpoint(args, cfg):
    """Test a checkpoint; return the matrix and the class names."""
    inferencer = model_files.load(args, args.config, args.ckpt_or_result)
    dataset = datasets.batches.build_dataset(cfg)
    found = datasets.batches.batches(inferencer.model, dataset)
    matrix = visualization.confusions.predict(
        inferencer.model, found, inferencer.classes
    ).matrix()
    return torch.as_tensor(matrix), inferencer.classes


def matrix_of_results(args, cfg):
    """Read predictions; return the matrix and the class names, or None."""
    results = evaluation.predictions.read_predictions(
        args.ckpt_or_result, 'pred_score', 'gt_label'
    )
    metric = mmpretrain.evaluation.ConfusionMatrix()
    metrics = mmengine.evaluator.Evaluator(metric).offline_evaluate(results)
    return metrics['confusion_matrix/result'], classes_of(cfg)


def classes_of(cfg):
    """Return the class names, or None without the test set."""
    try:
        dataset = datasets.batches.build_dataset(cfg, pipeline=[])
    except OSError as error:
        warn(f'class numbers instead of names, test set: {error}')
        return None
    return dataset.metainfo.get('classes')


def draw(matrix, classes, include_values, cmap):
    """Draw the matrix with mmpretrain, enlarged for many class names."""
    figure = mmpretrain.evaluation.ConfusionMatrix.plot(
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
    for count, place in zip(counts.tolist(), places.tolist(), strict=True):
        true, predicted = divmod(place, len(matrix))
        if count:
            yield f'Confused   {names[true]} as {names[predicted]}: {count}'


def write(matrix, out):
    content = matrix.tolist() if out.suffix == '.json' else matrix
    mmengine.dump(content, out)


def main(args):
    source = args.ckpt_or_result
    with usage_errors(f'{args.config}, {source}'):
        if args.show_path:
            visualization.figures.check_picture(args.show_path)
        cfg = configs.read_config(args.config, args.cfg_options)
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
            visualization.figures.save(figure, args.show_path)
            print_safe(f'Saved      {args.show_path}')
