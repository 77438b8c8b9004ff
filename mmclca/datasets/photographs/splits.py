# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names that people give to the parts of a data set."""

SPLITS = dict(
    train='train',
    training='train',
    val='val',
    valid='val',
    validation='val',
    dev='val',
    test='test',
    testing='test',
)


def split_named(name: str) -> str | None:
    """The split that a folder or a cell of a table names.

    Args:
        name (str): The name, in whatever case.

    Returns:
        str | None: 'train', 'val' or 'test'; None for any other name.
    """
    return SPLITS.get(name.strip().lower())
