# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read a table of files, classes, splits and groups."""

import os
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from mmclca.errors import Error
from mmclca.languages import Note

from ..image_files import files_below
from .cells import is_image, read_cells
from .labeled_images import SPLITS, LabeledImages, recognize_split, split_words
from .spellings import normalize_name

FILE, LABEL = 'file', 'class'  # preferred titles
# further titles, without spaces
FILES = {
    *('filename', 'filepath', 'path', 'id', '文件', '文件名', '图片', '图像'),
    *('image', 'imagepath', 'imagename', 'imagefile', 'imageid', 'img'),
    *('imgpath', 'imgname', 'imgid', 'photo', 'photograph', 'picture'),
}
LABELS = {
    *('classname', 'label', 'labels', 'category', 'target', 'name'),
    *('species', 'cultivar', 'variety', '类别', '标签', '品种', '种类'),
}
SPLIT_TITLES = {'split', 'set', 'subset', 'partition'}
_FLAGS = {'1': True, 'true': True, 'yes': True, '0': False, 'false': False}
_FLAGS |= {'no': False, '': ''}
_UNTITLED = re.compile(r'column \d+$')  # title of a column without one
_FOLD = re.compile(r'\bfolds?\b|\bkfold\b|^is (train|val|test)')


class FileNames:
    """Look up images in a folder by spellings of their names.

    Files in the table's folder ``beside`` are found by exact names.
    """

    def __init__(self, folder: Path, beside: Path):
        self.folders = folder, beside
        self.hidden = []
        below = files_below(str(folder), self.hidden)
        self.paths = [path for path in below if is_image(path)]
        self.paths_by_spelling = defaultdict(list)
        for path in self.paths:
            name = normalize_name(Path(path).relative_to(folder).as_posix())
            for x in {name, os.path.basename(name)}:
                for spelling in (x, os.path.splitext(x)[0]):
                    self.paths_by_spelling[spelling.casefold()].append(
                        (spelling, path)
                    )

    def find(self, name: str) -> str:
        """Return the path of a file; empty if missing or ambiguous.

        The name may have Windows separators, another Unicode normalization or
        case, or lack its extension or folders.
        """
        spellings = (name, name.replace('\\', '/'))
        for folder in self.folders:
            for path in (os.path.join(folder, x) for x in spellings if name):
                if os.path.isfile(path):
                    return str(Path(path))
        plain = normalize_name(spellings[1]).removeprefix('./')
        matches = self.paths_by_spelling.get(plain.casefold(), [])
        same = [pair for pair in matches if pair[0] == plain]
        paths = {path for _, path in same or matches}
        return paths.pop() if len(paths) == 1 else ''


def read_table(
    table: Path, folder: Path, groups: str | None = None
) -> LabeledImages:
    """Read a table with one row per photo, in its order.

    Files are relative to ``folder``, else to the folder of the table. Images
    not in the table, without a class or with several classes are left out.
    ``groups`` is the title of a column; any other text gives no groups.

    Raises:
        FileNotFoundError: If the table or listed files are missing.
        Error: If the column of files or classes is ambiguous, a split
            is invalid, or there are fewer than two classes.
        ImportError: If a package for the format is not installed.
    """
    files = FileNames(folder, table.parent)
    file_names = [os.path.basename(x) for x in files.paths if not x.isascii()]
    cells, notes = read_cells(table, file_names[:50], files.find)
    try:
        columns = find_columns(cells, files, groups)
        splits = _read_splits(cells, columns.split)
    except Error as error:
        raise Error(f'{table}: {error}') from error
    names = [normalize_name(name) for name in cells[columns.label]]
    paths = _find_files(cells[columns.file], files, table)
    unused = _find_unused(paths, names, files, table)
    # keep the first of two equal rows
    rows = {path: row for row, path in reversed([*enumerate(paths)])}
    rows = sorted(row for path, row in rows.items() if path not in unused)
    used_names = [names[row] for row in rows]
    classes = sorted({*used_names})
    if len(classes) < 2:
        number = f'only {classes[0]!r}' if classes else 'none'
        raise Error(
            f'{table}: at least two classes are needed, found {number} in the '
            f'column {columns.label!r}'
        )
    folds = {title for title in cells if _FOLD.search(split_words(title))}
    for title in sorted(folds - {columns.split, groups}):
        notes.append(Note('photos.unused_column', dict(title=repr(title))))
    group_cells = None if groups is None else cells.get(groups)
    return replace(
        LabeledImages.from_names(
            [paths[row] for row in rows], used_names, str(table), classes
        ),
        # a photo without a group forms its own group
        groups=group_cells
        and [group_cells[row] or paths[row] for row in rows],
        splits=[splits[row] for row in rows],
        unused=unused,
        hidden=files.hidden,
        notes=notes,
    )


def read_column(
    table: Path, folder: Path, title: str
) -> dict[str, str] | None:
    """Read the cells in one column by the real path of their file.

    Files are relative to ``folder``, else to the folder of the table; missing
    ones and empty cells are left out. Return None without such a column.

    Raises:
        FileNotFoundError: If the table is missing.
        Error: If the column of files is ambiguous.
        ImportError: If a package for the format is not installed.
    """
    files = FileNames(folder, table.parent)
    cells, _ = read_cells(table, is_file=files.find)
    if title not in cells:
        return None
    titles = [x for x in cells if x != title]
    try:
        file, _ = _find_file_column(titles, cells, files)
    except Error as error:
        raise Error(f'{table}: {error}') from error
    paths = [files.find(name) for name in cells[file]]
    return {
        os.path.realpath(path): cell
        for path, cell in zip(paths, cells[title], strict=True)
        if path and cell
    }


def _find_files(names: list[str], files: FileNames, table: Path) -> list[str]:
    """Return the absolute paths of the files in a column."""
    path_by_name = {name: files.find(name) for name in names}
    missing = [name for name, path in path_by_name.items() if not path]
    if missing:
        examples = ', '.join(name or '(an empty cell)' for name in missing[:3])
        raise FileNotFoundError(
            f'{table}: {len(missing)} files are missing, such as {examples}; '
            f'give paths relative to {files.folders[0]} or to the folder of '
            'the table'
        )
    return [path_by_name[name] for name in names]


def _read_splits(cells: dict, column: str | None) -> list[str]:
    if column is None:
        return [''] * len(next(iter(cells.values())))
    if _is_flag(column, cells):
        split = recognize_split(column)
        other = 'test' if split == 'train' else 'train'
        named = {'': '', True: split, False: other}
        return [named[_FLAGS[cell.lower()]] for cell in cells[column]]
    named = {name: name and recognize_split(name) for name in cells[column]}
    wrong = [name for name in named if named[name] not in ('', *SPLITS)]
    if wrong:
        raise Error(
            f'column {column!r}: {wrong[0]!r} is not a split; write train, '
            'val, test or nothing, or rename the column'
        )
    return [named[name] for name in cells[column]]


def _is_flag(title: str, cells: dict) -> bool:
    """Return whether a column is a flag such as ``is_train``."""
    is_named = split_words(title).startswith('is ') and recognize_split(title)
    return bool(is_named) and {x.lower() for x in cells[title]} <= {*_FLAGS}


def _find_unused(
    paths, names, files: FileNames, table: Path
) -> dict[str, Note]:
    """Return the reasons for unused files, by path."""
    classes = defaultdict(set)
    for path, name in zip(paths, names, strict=True):
        classes[path].add(name)
    unlisted = [path for path in files.paths if path not in classes]
    name = dict(table=table.name)
    unused = dict.fromkeys(unlisted, Note('photos.unlisted', name))
    for path, names_of_file in classes.items():
        if '' in names_of_file:
            unused[path] = Note('photos.unlabeled', name)
        elif len(names_of_file) > 1:
            unused[path] = Note('photos.several_labels', name)
    return unused


@dataclass(frozen=True)
class Columns:
    """Titles for the columns with files, classes and, if any, splits."""

    file: str
    label: str
    split: str | None


def find_columns(
    cells: dict[str, list[str]], files: FileNames, groups: str | None = None
) -> Columns:
    """Find the columns of files, classes and splits by title and content.

    The column ``groups`` is not considered.

    Raises:
        Error: If a column is ambiguous; names the title to use.
    """
    titles = [title for title in cells if title != groups]
    file, endings = _find_file_column(titles, cells, files)
    candidates = [title for title in titles if title not in (file, *endings)]
    splits = [x for x in candidates if split_words(x) in SPLIT_TITLES]
    splits += [x for x in candidates if _is_flag(x, cells)]
    for title in filter(_UNTITLED.match, candidates):
        names = {recognize_split(cell) for cell in cells[title]}
        if 'train' in names and names <= {*SPLITS}:
            splits.append(title)
    candidates = [x for x in candidates if not _FOLD.search(split_words(x))]
    candidates = [title for title in candidates if title not in splits]
    label = _select_title(candidates, LABEL, LABELS, cells, 'classes')
    return Columns(file, label, next(iter(splits), None))


def _find_file_column(
    titles: list[str], cells: dict, files: FileNames
) -> tuple[str, list[str]]:
    """Return the file column, and all columns that list files."""
    endings = _select_columns(titles, cells, is_image)
    endings = endings or _select_columns(titles, cells, files.find)
    file = _select_title(endings or titles, FILE, FILES, cells, 'files')
    return file, endings


def _select_columns(
    titles: list[str], cells: dict, holds: Callable[[str], object]
) -> list[str]:
    """Return the columns in which ``holds`` accepts most of 100 cells."""
    accepted = {
        x: [bool(holds(cell)) for cell in cells[x][:100]] for x in titles
    }
    return [title for title, x in accepted.items() if 2 * sum(x) > len(x)]


def _select_title(
    titles: list[str],
    preferred: str,
    accepted: set[str],
    cells: dict,
    content: str,
) -> str:
    """Return the title ``preferred``, else an accepted one, else the only."""
    plain = {title: split_words(title).replace(' ', '') for title in titles}
    for names in ({preferred}, accepted, {*plain.values()}):
        matches = [title for title, name in plain.items() if name in names]
        if len(matches) == 1:
            return matches[0]
        if matches:
            break
    fix = f'name it {preferred!r}'
    if all(map(_UNTITLED.match, cells)):
        fix = f'add a first line with titles, such as {FILE},{LABEL}'
    raise Error(
        f'cannot identify the column of {content} among '
        f'{", ".join(map(repr, cells))}; {fix}'
    )
