# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a fit found of each photograph, as files."""

from collections.abc import Iterator

from safetensors.torch import save
from torch import Tensor

from mmclca.datasets.photographs import Checked, Photographs
from mmclca.utils.atomic_write import replace_bytes
from mmclca.utils.csv_files import write_rows

from .model_folder import ModelFolder

COLUMNS = (
    *('path', 'class', 'group', 'split', 'used', 'why_not'),
    *('predicted', 'p_given'),
)


def write_evidence(
    folder: ModelFolder, labels: Tensor, probabilities: Tensor
) -> None:
    """Write evidence.safetensors.

    Args:
        folder (ModelFolder): Where.
        labels (Tensor): Classes of the photographs that were learned from,
            (N,).
        probabilities (Tensor): What classifiers that had not seen them made
            of them, (N, K); NaN where one was not tested.
    """
    tensors = dict(
        probabilities=probabilities.float().contiguous(), labels=labels
    )
    replace_bytes(folder.evidence, save(tensors))


def write_table(
    folder: ModelFolder, checked: Checked, probabilities: Tensor
) -> None:
    """Write photographs.csv: first those that were learned from.

    Args:
        folder (ModelFolder): Where.
        checked (Checked): All photographs.
        probabilities (Tensor): See :func:`write_evidence`.
    """
    photographs = checked.photographs
    learned = photographs.to_train()
    pairs = zip(learned, probabilities, strict=True)
    rows = [
        COLUMNS,
        *(_learned(photographs, i, p) for i, p in pairs),
        *_held_out(photographs, {*learned}),
        *_left_out(checked),
    ]
    write_rows(folder.table, rows)


def _begin(photographs: Photographs, i: int) -> list[str]:
    groups = photographs.groups
    return [
        photographs.paths[i],
        photographs.classes[photographs.labels[i]],
        groups[i] if groups else '',
        photographs.splits[i],
    ]


def _learned(photographs: Photographs, i: int, probabilities: Tensor) -> list:
    found = ['', '']
    if not probabilities.isnan().any():
        best = photographs.classes[int(probabilities.argmax())]
        found = [best, f'{float(probabilities[photographs.labels[i]]):.6f}']
    return [*_begin(photographs, i), True, '', *found]


def _held_out(photographs: Photographs, learned: set) -> Iterator[list]:
    for i, split in enumerate(photographs.splits):
        if i not in learned:
            why = f'held out in {split}'
            yield [*_begin(photographs, i), False, why, '', '']


def _left_out(checked: Checked) -> Iterator[list]:
    reasons = checked.photographs.left_out | checked.unread
    reasons |= {path: f'same as {kept}' for path, kept in checked.doubled}
    reasons |= {path: f'same as {kept}' for path, kept in checked.leaks}
    for paths in checked.conflicts:
        reasons |= dict.fromkeys(paths, 'the same picture in two classes')
    for path, reason in reasons.items():
        yield [path, '', '', '', False, reason, '', '']
