# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Count the tables of tokens and GMACs in docs/methods.

``python tools/dev/write_method_tables.py`` writes those of all pages,
``... docs/methods/evit.md`` that of one, between the marks in the page.
"""

from pathlib import Path

from mmclca import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / 'docs/methods'
BEGIN = '<!-- tables: tools/dev/write_method_tables.py -->\n'
END = '<!-- end of tables -->'
TITLES = ('keep rate', 'tokens', 'GMACs', 'tokens, CLCA', 'GMACs, CLCA')
SIZES = (224, 448)
KEEP_RATES = (1.0, 0.7, 0.5, 0.25, 0.1)


def config(method, size, keep_rate, clca):
    """Return the config of a classifier with one method.

    Args:
        method (str): Name of the page, the method's in lower case.
        size (int): Height and width of the image in pixels.
        keep_rate (float): Keep rate of all stages.
        clca (bool): Whether with CLC and CLA.
    """
    from mmengine.config import Config

    from mmclca.models import reduction_of, with_reduction

    base = ROOT / f'configs/_base_/models/clca-{method}_vit-base-p16.py'
    model = Config.fromfile(base).model
    model.backbone.img_size, model.head.num_classes = size, 80
    name = reduction_of(model)['method']
    return with_reduction(model, name, keep_rate, cache=clca, cla=clca)


def cells(method, size, keep_rate, clca):
    """Tokens at the layers that CLA reads, and GMACs, as text."""
    import torch

    from mmclca.evaluation.cost import count_config

    torch.manual_seed(0)  # for ATS, which is run
    cost = count_config(config(method, size, keep_rate, clca))
    tokens = '/'.join(str(cost.tokens[layer]) for layer in (3, 6, 9, 11))
    gmacs = f'{cost.flops / 1e9:.2f}'
    if cost.distances:
        gmacs += f' (+{cost.distances / 1e9:.2f})'
    return tokens, gmacs


def row(method, size, keep_rate):
    """Texts of a row of a table: without CLCA, then with it."""
    counted = (cells(method, size, keep_rate, clca) for clca in (False, True))
    return [f'{keep_rate:g}', *(text for pair in counted for text in pair)]


def tables(method):
    """Return lines of the tables of one method, one an image size."""
    from mmclca.benchmark.pages import line, table_head

    for size in SIZES:
        yield from ['', f'ViT-B/16, {size} px, 80 classes:', '']
        yield from table_head(TITLES)
        for keep_rate in KEEP_RATES:
            yield line(row(method, size, keep_rate))


def write(page):
    """Replace what is between the marks of a page."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise cli.Mistake(
            f'{page} lacks the marks of the tables: add the lines '
            f'{BEGIN.strip()} and {END}'
        )
    counted = '\n'.join(tables(page.stem)).lstrip('\n')
    page.write_text(f'{before}{begin}{counted}\n{end}{after}')


def main():
    parser = cli.Parser(description=__doc__.partition('\n')[0])
    parser.add('pages', 'pages to update (default: all)', nargs='*', type=Path)
    pages = parser.parse_args().pages
    from mmengine.registry import init_default_scope

    init_default_scope('mmpretrain')
    for page in pages or sorted(PAGES.glob('[!R]*.md')):
        write(page)
        print(page)


if __name__ == '__main__':
    cli.run(main)
