# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A table of texts as Markdown and as LaTeX."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from mmclca.utils.atomic_write import replace_file

DASH = '–'


@dataclass
class TextTable:
    """A table of texts.

    Args:
        caption (str): What it shows.
        columns (list[tuple[str, str]]): Group, or '', and title of each.
        rows (list[list[str]]): Cells of each row.
        notes (list[str]): Sentences below it.
    """

    caption: str
    columns: list[tuple[str, str]]
    rows: list[list[str]]
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
        replace_file(file, lambda part, t=text: part.write_text(t, 'utf-8'))
    return files


def to_markdown(table: TextTable) -> str:
    """A table as Markdown, with the groups within its titles."""
    titles = [f'{title} ({g})' if g else title for g, title in table.columns]
    grid = pd.DataFrame(table.rows, columns=titles).to_markdown(
        index=False, disable_numparse=True, colalign=_alignment(table)
    )
    return '\n\n'.join([table.caption, grid, *table.notes]) + '\n'


def _alignment(table: TextTable) -> list[str]:
    words = ('method', 'backbone')
    return ['left' if t in words else 'right' for _, t in table.columns]


def to_latex(table: TextTable) -> str:
    """A table as LaTeX, for a document that uses ``booktabs``."""
    sides = ''.join(side[0] for side in _alignment(table))
    body = [_line(title for _, title in table.columns), r'\midrule']
    body += [_line(row) for row in table.rows]
    caption = escape(' '.join([table.caption, *table.notes]))
    return '\n'.join(
        [
            r'\begin{table*}',
            r'\centering',
            rf'\caption{{{caption}}}',
            rf'\begin{{tabular}}{{{sides}}}',
            r'\toprule',
            *_group_lines(table),
            *body,
            r'\bottomrule',
            r'\end{tabular}',
            r'\end{table*}',
            '',
        ]
    )


def _group_lines(table: TextTable) -> list[str]:
    """A line above the titles, with a rule under each group."""
    groups = [group for group, _ in table.columns]
    if not any(groups):
        return []
    cells, rules, start = [], [], 1
    for group in dict.fromkeys(groups):
        width = groups.count(group)
        cells.append(rf'\multicolumn{{{width}}}{{c}}{{{escape(group)}}}')
        if group:
            rules.append(rf'\cmidrule(lr){{{start}-{start + width - 1}}}')
        start += width
    return [' & '.join(cells) + r' \\', ' '.join(rules)]


def _line(cells: Iterable[str]) -> str:
    return ' & '.join(map(escape, cells)) + r' \\'


def escape(text: str) -> str:
    """A text for LaTeX, which reads some characters as commands."""
    commands = {
        '\\': r'\textbackslash{}',
        '^': r'\textasciicircum{}',
        '~': r'\textasciitilde{}',
        '±': r'$\pm$',
        DASH: '--',
    }
    commands |= {mark: f'\\{mark}' for mark in '&%$#_{}'}
    return ''.join(commands.get(letter, letter) for letter in text)
