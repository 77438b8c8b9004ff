# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Count tokens and GMACs per method for docs/methods.

``python tools/dev/write_method_tables.py`` counts every method,
``... write_method_tables.py EViT ToMe`` these two. All counts are stored in
``docs/methods/costs.csv``; ``docs/methods/README.md`` shows one keep rate.
"""

from itertools import product
from pathlib import Path

from marked_text import write_between

from mmclca import cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs/methods/README.md'
COSTS = ROOT / 'docs/methods/costs.csv'
BEGIN = '<!-- table: tools/dev/write_method_tables.py -->\n'
END = '<!-- end of table -->'
SIZES = (224, 448)
KEEP_RATES = (1.0, 0.7, 0.5, 0.25, 0.1)
SHOWN = '0.5'  # keep rate in the page
COUNTS = ('tokens', 'gmacs', 'distance_gmacs')
COLUMNS = (
    *('method', 'img_size', 'keep_rate'),
    *(*COUNTS, *(f'{name}_clca' for name in COUNTS)),
)
TITLES = (
    *('method', 'tokens, 224 px', 'GMACs', 'with CLCA'),
    *('GMACs, 448 px', 'with CLCA'),
)


def config(method, size, keep_rate, clca):
    """Return a classifier config with one method, with or without CLCA."""
    from mmengine.config import Config

    from mmclca.models import with_reduction

    name = f'clca-{method.lower()}_vit-base-p16.py'
    model = Config.fromfile(ROOT / 'configs/_base_/models' / name).model
    model.backbone.img_size, model.head.num_classes = size, 80
    return with_reduction(model, method, keep_rate, cache=clca, cla=clca)


def cells(method, size, keep_rate, clca):
    """Return tokens after the layers used by CLA, and GMACs, as text."""
    import torch

    from mmclca.evaluation.cost import count_config

    torch.manual_seed(0)  # ATS is counted on a random image
    cost = count_config(config(method, size, keep_rate, clca))
    tokens = '/'.join(str(cost.tokens[layer]) for layer in (3, 6, 9, 11))
    distances = f'{cost.distances / 1e9:.2f}' if cost.distances else ''
    return tokens, f'{cost.flops / 1e9:.2f}', distances


def row(method, size, keep_rate):
    """Return a CSV row: counts without and with CLCA."""
    counted = (cells(method, size, keep_rate, clca) for clca in (False, True))
    texts = [text for cost in counted for text in cost]
    values = (method, str(size), f'{keep_rate:g}', *texts)
    return dict(zip(COLUMNS, values, strict=True))


def read_costs():
    """Return the CSV rows."""
    from mmclca.utils.files import read_rows

    return read_rows(COSTS, *COLUMNS)


def shown(costs):
    """Return the table lines in the page."""
    from mmclca.benchmark.pages import line, table_head

    by_method = {}
    for cost in costs:
        if cost['keep_rate'] == SHOWN:
            found = by_method.setdefault(cost['method'], [cost['method']])
            found += [cost['tokens']] if cost['img_size'] == '224' else []
            found += [cost['gmacs'], cost['gmacs_clca']]
    return [*table_head(TITLES), *map(line, by_method.values())]


def write_table(costs):
    """Replace the table between the marks in the page."""
    lines = '\n'.join(shown(costs))
    write_between(PAGE, BEGIN, END, f'{lines}\n')


def main():
    parser = cli.Parser(description=__doc__.partition('\n')[0])
    parser.add('methods', 'default: all', nargs='*')
    methods = parser.parse_args().methods
    from mmengine.registry import init_default_scope

    from mmclca.utils.files import write_rows

    init_default_scope('mmpretrain')
    stored = read_costs()
    methods = methods or {cost['method'] for cost in stored}
    costs = [cost for cost in stored if cost['method'] not in methods]
    costs += [row(*key) for key in product(methods, SIZES, KEEP_RATES)]
    costs.sort(key=lambda cost: cost['method'].lower())
    write_rows(COSTS, [COLUMNS, *(cost.values() for cost in costs)])
    write_table(costs)
    print(COSTS, PAGE, sep='\n')


if __name__ == '__main__':
    cli.run(main)
