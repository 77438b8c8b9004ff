# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/analysis_tools/confusion_matrix.py`` does."""

import tempfile

import matplotlib.pyplot as plt
import mmengine
from mmengine.evaluator import Evaluator
from mmpretrain.evaluation import ConfusionMatrix

from mmclca.checkpoints.loading import load_trained
from mmclca.checkpoints.stored import is_checkpoint
from mmclca.configs import read_config, require_settings
from mmclca.engine.runner import build_runner, set_loader_defaults
from mmclca.evaluation.predictions import read_results
from mmclca.utils.terminal import say
from mmclca.visualization.batches import dataset_of
from mmclca.visualization.figure_files import check_picture

from .. import plain_errors


def matrix_of_checkpoint(cfg, checkpoint):
    """Test a checkpoint; gives the matrix and the names of the classes."""
    require_settings(cfg, 'model', 'test_dataloader', 'test_cfg')
    cfg.test_evaluator = dict(type='ConfusionMatrix')
    cfg.load_from = None
    cfg.resume = False
    set_loader_defaults(cfg, no_pin_memory=False)
    with tempfile.TemporaryDirectory() as cfg.work_dir:
        runner = build_runner(cfg)
        load_trained(runner.model, checkpoint)
        matrix = runner.test()['confusion_matrix/result']
    return matrix, runner.test_dataloader.dataset.metainfo.get('classes')


def matrix_of_results(cfg, path):
    """As :func:`matrix_of_checkpoint`, of predictions made before."""
    results = read_results(path, 'pred_score', 'gt_label')
    metrics = Evaluator(ConfusionMatrix()).offline_evaluate(results)
    return metrics['confusion_matrix/result'], classes_of(cfg)


def classes_of(cfg):
    """Names of the test set, None where it is not here."""
    try:
        dataset = dataset_of(cfg, pipeline=[])
    except OSError as error:
        print(f'no class names, the test set is not here: {error}')
        return None
    return dataset.metainfo.get('classes')


def draw(matrix, classes, include_values, cmap):
    """mmpretrain's picture, with room for names and more classes."""
    plt.close('all')
    figure = ConfusionMatrix.plot(
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
        if args.show_path:
            check_picture(args.show_path)
        cfg = read_config(args.config, args.cfg_options)
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
