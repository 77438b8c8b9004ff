# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Lists of ``path label`` and of class names, as mmpretrain reads them."""

import os

from mmclca.utils.atomic_write import replace_text
from mmclca.utils.reading import read_lines


def list_lines(images, folder):
    """The lines of a list.

    Args:
        images (Iterable[tuple[str | Path, int]]): Paths and labels.
        folder (Path): That of the list, from which paths begin.

    Returns:
        list[str]: One an image.
    """
    return [f'{os.path.relpath(path, folder)} {n}' for path, n in images]


def read_list(folder, name, num_classes):
    """Read a list of a data set.

    Args:
        folder (Path): That of the data set, from which paths begin.
        name (str): Path of the list in it.
        num_classes (int): Labels are below it.

    Returns:
        list[tuple[Path, int]]: Paths and labels.

    Raises:
        ValueError: Naming all lines that are no path and label.
    """
    pairs, wrong = [], []
    lines = read_lines(folder / name)
    lines = filter(None, map(str.strip, lines))
    for number, line in enumerate(lines, 1):
        path, _, label = line.rpartition(' ')
        if path and label.isdecimal() and int(label) < num_classes:
            pairs.append((folder / path, int(label)))
        else:
            wrong.append(f'\n  {number}: {line}')
    if wrong:
        raise ValueError(
            f'{folder / name}: lines must be "path label", with labels from '
            f'0 to {num_classes - 1}, but there are:{"".join(wrong)}'
        )
    return pairs


def write_lists(lists, refusal='', old=(), force=False):
    """Write lists; none of them if that would lose another one.

    Args:
        lists (dict[Path, list[str]]): The lines of each file.
        refusal (str): What is said where a file is there and differs, unless
            it is replaced.
        old (Iterable[Path]): Files that must not be there beside the lists.
        force (bool): Whether what differs is replaced, and ``old`` deleted.
            Defaults to False.

    Raises:
        ValueError: If a file is there and differs, unless ``force``.
    """
    texts = {
        file: ''.join(f'{line}\n' for line in lines)
        for file, lines in lists.items()
    }
    differ = [
        file
        for file in dict.fromkeys([*texts, *old])
        if file.exists() and file.read_text('utf-8') != texts.get(file)
    ]
    if differ and not force:
        raise ValueError(f'{", ".join(map(str, differ))}: {refusal}')
    for file, text in texts.items():
        replace_text(file, text)
    for file in set(differ) - texts.keys():
        file.unlink()
