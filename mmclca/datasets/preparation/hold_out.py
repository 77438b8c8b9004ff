# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Lists of a data set without some of its classes."""

import numpy as np

from .lists import list_lines


def draw_classes(num_classes, num, seed):
    """Draw the classes to hold out.

    Args:
        num_classes (int): Classes of the data set.
        num (int): How many are drawn; at least two are left.
        seed (int): Seed of the draw.

    Returns:
        list[int]: Their labels, ascending.

    Raises:
        ValueError: If too few or too many are to be drawn.
    """
    if not 1 <= num <= num_classes - 2:
        raise ValueError(
            f'--num {num}: with {num_classes} classes it must be from 1 to '
            f'{num_classes - 2}, so that two are left'
        )
    rng = np.random.default_rng(seed)
    return sorted(rng.choice(num_classes, num, replace=False).tolist())


def hold_out(lists, classes, held_out, out):
    """Make the lists of a data set without some of its classes.

    An image of several lists is kept in the first of them only.

    Args:
        lists (dict[str, list[tuple[Path, int]]]): Images and labels by the
            name of the list.
        classes (list[str]): Names of the classes.
        held_out (list[int]): Labels to hold out.
        out (Path): Folder of the new lists.

    Returns:
        dict[Path, list[str]]: The lines of each file: the classes of ``out``
        and of ``out/held_out``, renumbered, and their images.
    """
    lists = _each_once(lists)
    known = [i for i in range(len(classes)) if i not in held_out]
    images = [pair for pairs in lists.values() for pair in pairs]
    held = out / 'held_out'
    return {
        out / 'classes.txt': [classes[i] for i in known],
        held / 'classes.txt': [classes[i] for i in held_out],
        held / 'images.txt': list_lines(_of(images, held_out), held),
        **{
            out / f'{name}.txt': list_lines(_of(pairs, known), out)
            for name, pairs in lists.items()
        },
    }


def _each_once(lists):
    seen, rest = set(), {}
    for name, pairs in lists.items():
        rest[name] = [pair for pair in pairs if pair[0] not in seen]
        seen.update(path for path, _ in pairs)
    return rest


def _of(pairs, wanted):
    """Images of the classes ``wanted``, which are renumbered."""
    return [(p, wanted.index(label)) for p, label in pairs if label in wanted]
