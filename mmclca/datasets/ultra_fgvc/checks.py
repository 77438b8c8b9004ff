# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Whether the lists of a set are what they must be."""

from .lists import all_numbers


def check_split(images, splits, wanted, info, source, counts=True):
    """Compare a split with what the set must have.

    Args:
        images (list[LeafImage]): All images found.
        splits (dict): What :func:`divide` returns.
        wanted (str): The split asked for.
        info (UltraFGVCInfo): The set.
        source (Source): Where it was found.
        counts (bool): Whether classes and images are counted, beside that
            there are some. Defaults to True.

    Raises:
        ValueError: Saying what was found and what was expected.
    """
    found = {split: len(listed) for split, listed in splits.items()}
    num_classes = len({image.class_name for image in images})
    wrong = num_classes != info.num_classes or (
        found.get(wanted) != info.counts.get(wanted, found.get(wanted))
    )
    if wanted in found and not (counts and wrong):
        return
    raise ValueError(
        f'{info.title}, split {wanted!r}, in {source} is not what it must '
        f'be.\n  found    {num_classes} classes, images: {_listing(found)}\n'
        f'  expected {info.num_classes} classes, images: '
        f'{_listing(info.counts)}\n' + _advice(wanted, found)
    )


def _advice(wanted, found):
    if wanted not in found:
        if not found:
            return 'No image belongs to it.'
        return (
            f'The lists here do not tell which images are {wanted!r}; '
            f'split may be {", ".join(found)}.'
        )
    return (
        'To use a part of the set: check_counts=False in a config, '
        '--partial for convert.'
    )


def _listing(counts):
    return ', '.join(f'{split} {n}' for split, n in counts.items())


def counts_otherwise(images, classes):
    """Tell whether a set's own labels count the classes in another order.

    Args:
        images (list[LeafImage]): All its images.
        classes (tuple[str]): Its classes.

    Returns:
        bool: Whether they do, beyond where they begin.
    """
    given = {image.class_name: image.given for image in images}
    if not all_numbers(given.values()):
        return False
    labels = {name: i for i, name in enumerate(classes)}
    return len({int(given[name]) - labels[name] for name in given}) > 1
