# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""One small chart per idea of the page "What may I believe?"."""

from itertools import takewhile
from pathlib import Path

from colors import BLUE, GREEN, INK, ORANGE, SKY
from results import plot

SIZE = 3.6, 2.3  # inches
SHIFTS = ('same session', 'later session')
TEN = 10  # photos per class
NUM_PHOTOS = 10, 30, 100, 300, 1000
FLAGGED = {
    'something else': 'rejected, other sets',
    'a similar\nnew class': 'rejected, same set',
}


def draw_validity():
    """Compare reported and measured accuracy by session."""
    from tables import read

    table = read('intervals')
    rows = table[table['count'] == TEN].groupby('shift')
    means = rows[['accuracy', 'test']].mean().loc[list(SHIFTS)]
    figure, axis = plot(*SIZE)
    for offset, column, label, color in (
        (-0.2, 'accuracy', 'reported by fit', SKY),
        (0.2, 'test', 'on the new photos', ORANGE),
    ):
        places = [i + offset for i in range(len(SHIFTS))]
        bars = axis.bar(places, means[column], 0.36, label=label, color=color)
        axis.bar_label(bars, fmt='%.0f')
    axis.set_xticks(range(len(SHIFTS)), SHIFTS)
    axis.set(ylabel='accuracy (%)', ylim=(0, 118))
    axis.legend(frameon=False, ncols=2, fontsize=8, loc='upper center')
    return figure


def draw_interval():
    """Plot the interval for 80% accuracy by tested photos."""
    from mmclca.evaluation import wilson

    figure, axis = plot(*SIZE)
    for position, photos in enumerate(NUM_PHOTOS):
        low, high = wilson(0.8, photos)
        axis.plot([position] * 2, [100 * low, 100 * high], color=BLUE, lw=5)
        axis.plot(position, 80, 'o', color='white', ms=4)
    axis.set_xticks(range(len(NUM_PHOTOS)), NUM_PHOTOS)
    axis.set(xlabel='tested photos', ylabel='accuracy (%)', ylim=(40, 100))
    return figure


def draw_groups():
    """Sketch folds with photos from three plants, without and with groups."""
    figure, axes = plot(*SIZE, columns=2)
    colors = [BLUE] * 3 + [ORANGE] * 3 + [GREEN] * 3
    tested = {'without groups': (2, 5, 8), 'with groups': (6, 7, 8)}
    for axis, (title, photos) in zip(axes, tested.items(), strict=True):
        for i, color in enumerate(colors):
            is_tested = i in photos
            axis.plot(i % 3, -(i // 3), 'o', ms=13, color=color)
            if is_tested:
                axis.plot(i % 3, -(i // 3), 's', ms=21, mfc='none', mec=INK)
        axis.set_title(title, fontsize=9)
        axis.set(xlim=(-0.7, 2.7), ylim=(-2.7, 0.7))
        axis.set_axis_off()
    figure.supxlabel('color: plant, square: test photo', fontsize=8)
    return figure


def draw_unknown():
    """Plot how often unknown classes are flagged."""
    from tables import read

    table = read('few_photos_unknown')
    table = table[table['count'] == TEN]
    figure, axis = plot(*SIZE)
    shares = [100 * table[column].mean() for column in FLAGGED.values()]
    bars = axis.barh([*FLAGGED], shares, 0.5, color=[GREEN, ORANGE])
    axis.bar_label(bars, fmt=' %.0f')
    axis.set(xlabel='flagged as unknown (%)', xlim=(0, 115))
    return figure


def read_page_table(page, column):
    """Return the rows of the table with a column, from a page in docs/."""
    lines = Path('docs', page).read_text('utf-8').splitlines()
    start = next(i for i, line in enumerate(lines) if f'| {column} |' in line)
    names, _, *rows = (
        [cell.strip() for cell in line.strip('|').split('|')]
        for line in takewhile(lambda x: x.startswith('|'), lines[start:])
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


def draw_sure():
    """Plot how many photos get one class at 95%, by accuracy."""
    rows = read_page_table('sure.md', '`fit` stated')
    figure, axis = plot(*SIZE)
    points = [
        (float(row['accuracy'].strip('%')), float(row['one class'].strip('%')))
        for row in rows
    ]
    axis.plot(*zip(*points, strict=True), 'o', color=BLUE, ms=7, alpha=0.8)
    axis.set(xlabel='accuracy (%)', ylabel='one class (% of photos)')
    return figure


def draw_survey():
    """Plot interval widths, relative to labels without a model."""
    rows = read_page_table('survey.md', 'surveys')[:5]
    figure, axis = plot(*SIZE)
    labels = [
        row['photos'].partition(' (')[0].replace(' of the ', '\nof the ')
        for row in rows
    ]
    # two columns have this name; the last is for the counts
    widths = [float(row['width']) for row in rows]
    axis.barh(labels, widths, 0.6, color=GREEN)
    axis.axvline(1, color=INK, lw=1)
    axis.invert_yaxis()
    axis.set(xlabel='width (1: without a model)', xlim=(0, 1.1))
    axis.tick_params(axis='y', labelsize=8)
    return figure


PICTURES = {
    'believe/validity': draw_validity,
    'believe/interval': draw_interval,
    'believe/groups': draw_groups,
    'believe/unknown': draw_unknown,
    'believe/sure': draw_sure,
    'believe/survey': draw_survey,
}
