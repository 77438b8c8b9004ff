# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which classes are taken for which: ``python
tools/analysis_tools/confusion_matrix.py CONFIG CHECKPOINT|RESULTS``."""

import tempfile
from pathlib import Path

from mmclca.checkpoints.fitted import is_checkpoint
from mmclca.utils.lazy import lazy
from mmclca.utils.terminal import say

from .. import Parser, plain_errors
from ..arguments import add_cfg_options, file_named

plt = lazy('matplotlib.pyplot')
loading = lazy('mmclca.checkpoints.loading')

configs = lazy('mmclca.configs')
engine_runner = lazy('mmclca.engine.runner')
predictions = lazy('mmclca.evaluation.predictions')
figures = lazy('mmclca.visualization.figures')
batches = lazy('mmclca.datasets.batches')
mmengine = lazy('mmengine')
evaluator = lazy('mmengine.evaluator')
evaluation = lazy('mmpretrain.evaluation')


def parse_args():
    parser = Parser(
        description='Count how often each class of the test set is taken for '
        'each; rows are true classes, columns predicted ones'
    )
    parser.add('config', 'path or name of a config')
    parser.add(
        'ckpt_or_result',
        'a checkpoint, which is tested, or the .pkl of tools/test.py --out',
    )
    parser.add(
        '--out',
        'write the matrix: .pkl (a tensor) or .json (lists)',
        type=file_named('.pkl', '.json'),
    )
    parser.flag('--show', 'show the picture in a window')
    parser.add('--show-path', 'picture to write', type=Path)
    parser.flag('--include-values', 'write the numbers into the picture')
    parser.add('--cmap', 'colours of matplotlib', 'viridis', metavar='NAME')
    add_cfg_options(parser)
    args = parser.parse_args()
    from matplotlib import colormaps

    if args.cmap not in colormaps:
        parser.error(
            f'--cmap {args.cmap}: one of {", ".join(sorted(colormaps))}'
        )
    return args


def matrix_of_checkpoint(cfg, checkpoint):
    """Test a checkpoint; gives the matrix and the names of the classes."""
    configs.require_settings(cfg, 'model', 'test_dataloader', 'test_cfg')
    cfg.test_evaluator = dict(type='ConfusionMatrix')
    cfg.load_from = None
    cfg.resume = False
    engine_runner.set_loader_defaults(cfg, no_pin_memory=False)
    with tempfile.TemporaryDirectory() as cfg.work_dir:
        runner = engine_runner.build_runner(cfg)
        loading.load_trained(runner.model, checkpoint)
        matrix = runner.test()['confusion_matrix/result']
    return matrix, runner.test_dataloader.dataset.metainfo.get('classes')


def matrix_of_results(cfg, path):
    """As :func:`matrix_of_checkpoint`, of predictions made before."""
    results = predictions.read_predictions(path, 'pred_score', 'gt_label')
    metrics = evaluator.Evaluator(
        evaluation.ConfusionMatrix()
    ).offline_evaluate(results)
    return metrics['confusion_matrix/result'], classes_of(cfg)


def classes_of(cfg):
    """Names of the test set, None where it is not here."""
    try:
        dataset = batches.dataset_of(cfg, pipeline=[])
    except OSError as error:
        print(f'no class names, the test set is not here: {error}')
        return None
    return dataset.metainfo.get('classes')


def draw(matrix, classes, include_values, cmap):
    """mmpretrain's picture, with room for names and more classes."""
    plt.close('all')
    figure = evaluation.ConfusionMatrix.plot(
        matrix, include_values, cmap, classes=classes, show=False
    )
    side = min(max(10, 3 + 0.25 * len(matrix)), 60)
    figure.set_size_inches(side, side)
    figure.axes[0].tick_params(axis='x', labelrotation=90)
    return figure


def describe(matrix, classes):
    """Lines on the accuracy and the most frequent confusions."""
    right = matrix.diagonal().sum().item()
    yield f'{right} of {matrix.sum().item()} images right'
    wrong = matrix.clone().fill_diagonal_(0)
    names = classes or [str(label) for label in range(len(matrix))]
    counts, places = wrong.flatten().topk(min(5, wrong.numel()))
    for count, place in zip(counts.tolist(), places.tolist(), strict=True):
        true, predicted = divmod(place, len(matrix))
        if count:
            yield f'{count} of {names[true]} taken for {names[predicted]}'


def write(matrix, out):
    out.parent.mkdir(parents=True, exist_ok=True)
    mmengine.dump(matrix.tolist() if out.suffix == '.json' else matrix, out)


def main(args):
    source = args.ckpt_or_result
    with plain_errors(f'{args.config}, {source}'):
        if args.show:
            figures.check_window('give --show-path FILE')
        if args.show_path:
            figures.check_picture(args.show_path)
        cfg = configs.read_config(args.config, args.cfg_options)
        count = matrix_of_results
        if is_checkpoint(source):
            count = matrix_of_checkpoint
        matrix, classes = count(cfg, source)
    say(*describe(matrix, classes))
    if args.out:
        write(matrix, args.out)
    if args.show or args.show_path:
        figure = draw(matrix, classes, args.include_values, args.cmap)
    if args.show_path:
        figure.savefig(args.show_path, bbox_inches='tight')
        print(args.show_path)
    if args.show:
        plt.show()
