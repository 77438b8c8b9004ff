# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Few training images of a data set, drawn again and again, kept as files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from mmengine import list_from_file

from mmclca.datasets.preparation.lists import write_lists
from mmclca.model_index import home

NUM_DRAWS = 10
OF_A_CLASS = 3


def draw(labels: Sequence[int], num: int, seed: int) -> np.ndarray:
    """Draw training images, as many of each class.

    Args:
        labels (Sequence[int]): Label of each image.
        num (int): How many of a class.
        seed (int): Seed of the draw.

    Returns:
        numpy.ndarray: Positions of the drawn images, class by class.
    """
    rng, labels = np.random.RandomState(seed), np.asarray(labels)
    of_classes = (np.flatnonzero(labels == c) for c in np.unique(labels))
    return np.concatenate([rng.permutation(own)[:num] for own in of_classes])


def read_lines(file: Path) -> list[tuple[str, int]]:
    """Paths and labels of a list, as they stand there.

    Args:
        file (Path): A list of lines ``path label``.
    """
    pairs = (line.rpartition(' ') for line in list_from_file(str(file)))
    return [(path, int(label)) for path, _, label in pairs]


def draws_folder(dataset: str) -> Path:
    """Folder of the draws of a data set.

    Args:
        dataset (str): Name of the folder of the data set.
    """
    return home() / 'configs' / 'few_shot' / 'draws' / dataset


def read_draw(
    dataset: str, number: int
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """A draw that is kept as files.

    Args:
        dataset (str): Name of the folder of the data set.
        number (int): Number of the draw.

    Returns:
        tuple[list, list]: Paths and labels to train on, and all others, to
        test with.
    """
    folder = draws_folder(dataset)
    names = f'd{number}.txt', f'd{number}_test.txt'
    train, test = (read_lines(folder / name) for name in names)
    return train, test


def write_draws(data: Path, out: Path) -> None:
    """Write the draws of a data set, ``dN.txt`` and the rest, ``dN_test.txt``.

    Args:
        data (Path): Folder of the data set, with ``train.txt`` and
            ``test.txt``, whose images are drawn from in this order.
        out (Path): Folder of the new lists.

    Raises:
        ValueError: If another list is there under the name of one of them.
    """
    lines = [
        line
        for name in ('train.txt', 'test.txt')
        for line in list_from_file(str(data / name))
    ]
    labels = [int(line.rpartition(' ')[2]) for line in lines]
    lists = {}
    for number in range(NUM_DRAWS):
        drawn = draw(labels, OF_A_CLASS, number).tolist()
        rest = sorted(set(range(len(lines))).difference(drawn))
        lists[out / f'd{number}.txt'] = [lines[i] for i in drawn]
        lists[out / f'd{number}_test.txt'] = [lines[i] for i in rest]
    write_lists(lists, 'another draw is there: remove it first')
