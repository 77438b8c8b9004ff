# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write docs/results, the paper and figures in guides from the tables.

Without arguments, figures in README and guides are written, too. Missing
results are measured first if they need no training.
"""

from functools import cache
from pathlib import Path

import alternatives
import blocks
import classifier_choice
import fresh_datasets
import intervals
import jinja2
import pandas as pd
import schedules
import tables
import trained
import unknown_classes
from study import fit_values, losses, page_values

from mmclca import cli
from mmclca.utils.files import replace_text

RESULTS = Path('docs/results')
PAPER = Path('paper/paper.md.j2')


def load_study():
    """Return the values for the few_photos template."""
    report = page_values.Report.read()
    shared = page_values.values(report) | losses.values(report)
    return shared | fit_values.values(report)


def load_paper():
    """Return the values for the paper."""
    libraries = alternatives.values()['summaries']
    return load_study() | dict(libraries=libraries)


def load_fine_tuning():
    """Return the values for the fine_tuning template."""
    facts = tables.read_machine(trained.STUDY)
    return unknown_classes.values() | trained.values() | dict(facts=facts)


def runs(sweep):
    """Read all results in a sweep table."""
    return tables.read_sweep(RESULTS / f'{sweep}.csv')


@cache
def table_of_runs(sweep):
    """Return one row per run, sorted by seed."""
    table = pd.json_normalize(runs(sweep))
    return table.sort_values('run.seed').fillna({'run.variant': ''})


def select_runs(sweep, key):
    """Return the runs with these settings in a sweep."""
    keys = {f'run.{key}': value for key, value in key.items()}
    return tables.select(table_of_runs(sweep), keys)


def mean(sweep, column, form='{:.1f}', scale=1, **key):
    """Format the mean over the runs with these settings."""
    return form.format(scale * select_runs(sweep, key)[column].mean())


def spread(sweep, **key):
    """Format mean and standard deviation of the accuracy, '' without runs."""
    values = select_runs(sweep, key).accuracy
    if values.empty:
        return ''
    ends = f' ± {values.std():.1f}' if len(values) > 1 else ''
    return f'{values.mean():.1f}{ends}'


def by_seed(sweep, column='accuracy', **key):
    """Format the values in a column, by seed."""
    values = select_runs(sweep, key)[column]
    return ', '.join(values.dropna().map('{:.1f}'.format))


def before(sweep, **key):
    """Format the better linear probe accuracy before training, by seed."""
    values = select_runs(sweep, key).filter(like='start.').max(axis=1)
    return ', '.join(values.dropna().map('{:.1f}'.format))


def render(template, values):
    """Render a template; unknown names in the template raise an error."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.from_string(template.read_text('utf-8')).render(values)


def find_templates():
    """Return the templates by page."""
    files = [*sorted(RESULTS.glob('*.md.j2')), PAPER]
    return {file.name.removesuffix('.md.j2'): file for file in files}


def main():
    parser = cli.Parser(description=__doc__)
    pages = find_templates()
    which = 'names of pages (default: all)'
    parser.add('pages', which, nargs='*', choices=[*pages, []])
    parser.add('--out', 'folder to write to', Path(), type=Path)
    args = parser.parse_args()
    for page in args.pages or pages:
        print(write(pages[page], args.out))
    for page in [] if args.pages else blocks.PAGES:
        replace_text(args.out / page, blocks.fill(page, render))
        print(args.out / page)


def write(template, out):
    """Write the page for a template to the same folder in ``out``."""
    templates = dict(few_photos=load_study, paper=load_paper)
    templates.update(fine_tuning=load_fine_tuning)
    templates.update(intervals=intervals.values)
    templates.update(fresh_datasets=fresh_datasets.values)
    templates.update(schedules=schedules.values)
    templates.update(classifier_choice=classifier_choice.values)
    templates.update(alternatives=alternatives.values)
    of_sweeps = dict(runs=runs, mean=mean, spread=spread)
    of_sweeps.update(by_seed=by_seed, before=before)
    page = template.name.removesuffix('.md.j2')
    values = templates[page]() if page in templates else of_sweeps
    file = out / template.with_suffix('')
    replace_text(file, render(template, values))
    return file


if __name__ == '__main__':
    cli.run(main)
