# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What to do with three photographs a class: frozen and trained arms."""

from pathlib import Path

import compare
import pandas as pd
import probes
from compare import IMG_SIZE, LINES, SHALLOWER, difference

from mmclca.benchmark.steps import Setting, median_milliseconds, steps_of
from mmclca.sweep.compose import Cell
from mmclca.sweep.grid import read_grid
from mmclca.sweep.report import markdown
from mmclca.sweep.results import config_hash, read_results

OWN = Path('docs/results/few_photographs')
# columns that are no numbers
WORDS = ('arm', 'with', 'ours with', 'one change', 'reading')


def values():
    """Return what the template asks for."""
    results, why = read_results(OWN), read_results(f'{OWN}_why')
    frozen = probes.frozen_arms(OWN / 'probes')
    timed = probes.kept(OWN / 'speed/cpu.json', time_arms, frozen, results)
    runs = compare.to_runs(frozen, results, timed['milliseconds'])
    changes = compare.to_runs([], why, {})
    arms = compared(runs)
    functions = table, find, versus
    return dict(
        probes=frozen,
        results=results + why,
        timed=timed,
        arms=arms,
        changes=lambda names: table_of_changes(changes, runs, names),
        **{function.__name__: function for function in functions},
    )


def time_arms(frozen, results):
    """Milliseconds of an image of all networks, timed together."""
    configs = read_grid('configs/sweeps/few_photographs.py').configs()
    models = {
        one['network']: probes.config_of(one['arm']).model for one in frozen
    }
    for cell in (result['cell'] for result in results):
        models[compare.trained_model(cell)] = configs[Cell(**cell)].model
    where, setting = probes.facts(), Setting(batch=1)
    steps = steps_of(models, setting)
    return dict(
        milliseconds=median_milliseconds(steps, setting, rounds=30),
        models={k: config_hash(dict(model=v)) for k, v in models.items()},
        machine=where,
    )


def compared(runs):
    """Arms by data set, backbone and kind: ``frozen`` on all draws, and
    ``trained`` on those that CLCA and CLA were trained on."""
    found = {}
    for key, own in runs.groupby(['dataset', 'backbone']):
        on_all = compare.of_draws(own, range(probes.NUM_DRAWS))
        found[(*key, 'frozen')] = compare.to_arms(on_all)
        paper = own[own.line.isin([compare.CLCA, compare.CLA])]
        if len(paper):
            on_some = compare.of_draws(own, paper.draw.unique())
            found[(*key, 'trained')] = compare.to_arms(on_some)
    return found


def number(value):
    """Return a number with one digit, or a dash where there is none."""
    return '–' if value != value else f'{value:.1f}'


def signed(value):
    """Return a difference and its interval, without one of a single draw."""
    if value.draws < 2:
        return f'{value.mean:+.1f}'
    return f'{value.mean:+.1f} [{value.low:+.1f}, {value.high:+.1f}]'


def setting(arm):
    """Return what an arm has beside its classifier: tokens, pixels, layers."""
    words = [f'{arm.method} {arm.keep_rate:g}'] if arm.method else []
    if arm.img_size != IMG_SIZE:
        words.append(f'{arm.img_size} px')
    if arm.line == SHALLOWER:
        words.append(f'{arm.depth} layers')
    return ', '.join(words) or 'all tokens'


def table(arms, lines=LINES):
    """Return a row an arm, of some lines."""
    rows = [
        {
            'arm': f'**{arm.line}**' if arm.ours else arm.line,
            'with': setting(arm),
            'top-1 (%)': number(arm.accuracy),
            'macro recall (%)': number(arm.macro_recall),
            'GMACs': f'{arm.gmacs:.2f}',
            'ms': number(arm.ms),
            'CPU s to train': number(arm.seconds),
            'to ours [95 %]': '' if arm.ours else signed(arm.difference),
            'ours with': '' if arm.ours else setting(arms.loc[arm.beside]),
        }
        for arm in arms[arms.line.isin(lines)].itertuples()
    ]
    return markdown(pd.DataFrame(rows), WORDS)


def find(arms, **values):
    """Return the one arm that has some values."""
    for name, value in values.items():
        arms = arms[arms[name] == value]
    (found,) = arms.itertuples()
    return found


def versus(arms, one, other):
    """Return what an arm is above another one, with the interval, in
    points."""
    pair = (find(arms, **values).accuracies for values in (one, other))
    return signed(difference(*pair))


def table_of_changes(runs, ours, names):
    """Return a row for each single change to our recipe, after the recipes.

    Args:
        runs (pandas.DataFrame): Those of changes; ``line`` is one of
            ``names``.
        ours (pandas.DataFrame): Those of the recipe, on these draws or more.
        names (dict[str, str]): Changes in words, in the order of the table.
    """
    same = (ours.line == compare.OURS_TRAINED) & (ours.img_size == IMG_SIZE)
    ours = ours[same & ours.draw.isin(runs.draw)]
    recipes, changes = {}, []
    for name, words in names.items():
        own = runs[runs.line == name]
        if own.empty:
            continue
        recipe = ours[ours.keep_rate.isin(own.keep_rate)]
        title = 'the recipe, {0.method} {0.keep_rate:g}'.format(recipe.iloc[0])
        recipes[title] = _change(title, recipe)
        by_draw = [part.set_index('draw').accuracy for part in (own, recipe)]
        changes.append(_change(words, own, difference(*by_draw)))
    return markdown(pd.DataFrame([*recipes.values(), *changes]), WORDS)


def _change(words, runs, found=None):
    return {
        'one change': words,
        'draws': runs.draw.nunique(),
        'top-1 (%)': number(runs.accuracy.mean()),
        'to the recipe [95 %]': signed(found) if found else '',
        'reading': reading(found) if found else '',
        'GMACs': f'{runs.gmacs.iloc[0]:.2f}',
        'CPU s to train': number(runs.seconds.median()),
    }


def reading(found):
    """Return what a difference says, by its interval alone."""
    if found.draws < 2:
        return 'one draw only'
    if found.low > 0:
        return 'helps'
    return 'hurts' if found.high < 0 else 'no difference seen'
