# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tables of texts as Markdown and as LaTeX, both written by pandas."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from mmclca.utils.atomic_write import replace_text

DASH = '–'
WORDS = ('method', 'backbone')  # titles of the columns that are no numbers
LATEX = str.maketrans(
    {
        '\\': r'\textbackslash{}',
        '^': r'\textasciicircum{}',
        '~': r'\textasciitilde{}',
        '±': r'$\pm$',
        DASH: '--',
        **{mark: f'\\{mark}' for mark in '&%$#_{}'},
    }
)


@dataclass
class TextTable:
    """A table of texts.

    Args:
        caption (str): What it shows.
        cells (pandas.DataFrame): Texts; columns are titles, or pairs of a
            group, which may be '', and a title.
        notes (list[str]): Sentences below it.
    """

    caption: str
    cells: pd.DataFrame
    notes: list[str] = field(default_factory=list)


def write_table(table: TextTable, path: Path) -> list[Path]:
    """Write a table as Markdown and as LaTeX.

    Args:
        table (TextTable): The table.
        path (Path): Without suffix.

    Returns:
        list[Path]: The two files.
    """
    texts = {'.md': to_markdown(table), '.tex': to_latex(table)}
    files = [path.with_name(path.name + suffix) for suffix in texts]
    for file, text in zip(files, texts.values(), strict=True):
        replace_text(file, text)
    return files


def to_markdown(table: TextTable) -> str:
    """A table as Markdown, with the groups within its titles."""
    cells = table.cells
    if cells.columns.nlevels > 1:
        titles = [f'{t} ({group})' if group else t for group, t in cells]
        cells = cells.set_axis(titles, axis=1)
    return '\n\n'.join([table.caption, grid(cells), *table.notes]) + '\n'


def grid(cells: pd.DataFrame, words: Collection[str] = WORDS) -> str:
    """Rows and titles in Markdown.

    Args:
        cells (pandas.DataFrame): Texts.
        words (Collection[str]): Titles of the columns that are aligned to the
            left. Defaults to those of methods and backbones.
    """
    sides = ['left' if title in words else 'right' for title in cells]
    return cells.to_markdown(
        index=False, disable_numparse=True, colalign=sides
    )


def to_latex(table: TextTable) -> str:
    """A table as LaTeX, for a document that uses ``booktabs``."""
    titles = table.cells.columns
    text = (
        table.cells.style.hide(axis='index')
        .format(escape)
        .format_index(escape, axis='columns')
        .to_latex(
            environment='table*',
            position_float='centering',
            caption=escape(' '.join([table.caption, *table.notes])),
            column_format=''.join(
                'l' if title in WORDS else 'r'
                for title in titles.get_level_values(-1)
            ),
            multicol_align='c',
            hrules=True,
        )
    )
    if titles.nlevels == 1:
        return text
    # rules below the groups, which stand in the first line
    return text.replace('\\\\\n', f'\\\\\n{_group_rules(titles)}\n', 1)


def _group_rules(titles: pd.MultiIndex) -> str:
    columns = pd.Series(range(1, 1 + len(titles)), titles)
    ends = columns.groupby(level=0).agg(['min', 'max']).drop('')
    ends = ends.sort_values('min').itertuples(index=False)
    return ' '.join(rf'\cmidrule(lr){{{a}-{b}}}' for a, b in ends)


def escape(text: str) -> str:
    """A text for LaTeX, which reads some characters as commands."""
    return text.translate(LATEX)
