# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json
from collections import defaultdict
from pathlib import Path

import matplotlib.figure


def read_scalars(path: str) -> list:
    """Records of mmengine's ``vis_data/scalars.json``, one dict a line."""
    lines = Path(path).read_text().splitlines()
    return [json.loads(line) for line in lines]


def draw_curves(scalars: list, out: str, chance: float) -> None:
    """Draw the training loss and the validation accuracy of a run.

    Args:
        scalars (list[dict]): Records of :func:`read_scalars`.
        out (str): Picture to write.
        chance (float): Accuracy of guessing, in per cent, drawn as a line.
    """
    by_epoch = defaultdict(list)
    for record in scalars:
        if 'loss' in record:
            by_epoch[record['epoch']].append(record['loss'])
    tests = [record for record in scalars if 'accuracy/top1' in record]
    epochs = [record['step'] for record in tests]
    accuracies = [record['accuracy/top1'] for record in tests]
    figure = matplotlib.figure.Figure(figsize=(8, 3), layout='constrained')
    left, right = figure.subplots(1, 2)
    means = [sum(values) / len(values) for values in by_epoch.values()]
    left.plot(list(by_epoch), means, color='#1b6ca8')
    left.set(xlabel='epoch', ylabel='loss', title='training loss', ylim=0)
    right.plot(epochs, accuracies, color='#2a7f3f', marker='.')
    right.axhline(chance, color='0.5', linestyle='--')
    below = dict(color='0.4', ha='right', va='top')
    right.text(epochs[-1], chance - 1, 'chance', **below)
    right.set(xlabel='epoch', ylabel='top-1 (%)', ylim=(0, 100))
    right.set_title('validation accuracy')
    for axis in (left, right):
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.25)
        axis.spines[['top', 'right']].set_visible(False)
    figure.savefig(out, dpi=130)
