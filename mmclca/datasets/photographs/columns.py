# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which column of a table has the files, which the classes."""

from mmclca.utils.image_suffixes import PHOTOGRAPH_SUFFIXES

FILE, LABEL = 'file', 'class'  # these win over all others
FILES = {
    *('filename', 'file_name', 'filepath', 'file_path', 'path'),
    *('image', 'image_path', 'image_name', 'img', 'img_path'),
    *('photo', 'photograph', 'picture'),
}
LABELS = {
    *('class_name', 'label', 'category', 'target', 'name'),
    *('species', 'cultivar', 'variety'),
}
SPLITS = {'split', 'set', 'subset', 'partition'}


def find_columns(cells, groups: str | None = None) -> dict[str, str | None]:
    """Tell by titles and content what the columns of a table are.

    Args:
        cells (pandas.DataFrame): Texts; its columns are titles.
        groups (str, optional): A column that is neither file nor class.
            Defaults to None.

    Returns:
        dict[str, str | None]: The titles of ``file``, ``label`` and
        ``split``, the last one None where there is none.

    Raises:
        ValueError: If that is not clear; says which to rename.
    """
    titles = [title for title in cells.columns if title != groups]
    endings = [title for title in titles if _holds_files(cells[title])]
    file = _one_of(endings or titles, FILE, FILES, cells, 'files')
    others = [title for title in titles if title not in (file, *endings)]
    splits = [title for title in others if title.lower() in SPLITS]
    others = [title for title in others if title not in splits[:1]]
    label = _one_of(others, LABEL, LABELS, cells, 'classes')
    return dict(file=file, label=label, split=next(iter(splits), None))


def _holds_files(column) -> bool:
    """Whether most cells end as images do."""
    return column.str.lower().str.endswith(PHOTOGRAPH_SUFFIXES).mean() > 0.5


def _one_of(titles, first: str, known: set[str], cells, what: str) -> str:
    """The title that has the first name, or alone has one that is known, or
    is alone."""
    for names in ({first}, known, {title.lower() for title in titles}):
        found = [title for title in titles if title.lower() in names]
        if len(found) == 1:
            return found[0]
        if found:
            break
    raise ValueError(
        f'it is not clear which column has the {what}, of '
        f'{", ".join(map(repr, cells.columns))}: give it the title {first!r}'
    )
