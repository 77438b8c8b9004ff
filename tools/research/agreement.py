# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare models of reduce_tokens with timm's: predictions, cost and speed.

Writes the tables docs/results/agreement.csv and agreement_speed.csv, and from
them a part of docs/timm.md. ``MMCLCA_DATA`` and ``MMCLCA_WEIGHTS`` name the
folders of datasets and weights.
"""

from pathlib import Path
from statistics import median

import pandas as pd
import timm
import torch
from frozen import DATASETS, WEIGHTS, read_dataset
from PIL import Image
from tables import RESULTS, format_csv
from timm.data import create_transform, resolve_data_config

import mmclca
from mmclca import cli
from mmclca.benchmark.steps import Setting, inference_step, interleaved_seconds
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.models import list_methods
from mmclca.utils.files import replace_text

NETWORKS = {
    'DeiT-Tiny': ('deit_tiny_patch16_224', 'deit_tiny_patch16_224.pth'),
    'ViT-Tiny': ('vit_tiny_patch16_224', 'vit_tiny_patch16_224.safetensors'),
}
SETS = [name for name in DATASETS if name != 'leaf40_white']
RATES = (0.9, 0.7, 0.5)
TIMED = ('ToMe', 'ATC', 'DiffRate', 'EViT')
BATCHES = (1, 8)
TABLE = RESULTS / 'agreement.csv'
SPEEDS = RESULTS / 'agreement_speed.csv'


def load(network):
    """Return a model of timm with its ImageNet weights, and its transform."""
    name, file = NETWORKS[network]
    model = timm.create_model(name).eval()
    checkpoint = open_checkpoint(str(WEIGHTS / file))
    model.load_state_dict(checkpoint.weights)
    return model, create_transform(**resolve_data_config(model=model))


def choose_photos(name, number):
    """Return evenly spaced test photos of a dataset."""
    photos = read_dataset(name)
    paths = [*photos.path[photos.split == 'test']]
    return paths[:: max(1, len(paths) // number)][:number]


def read_photos(transform, number):
    """Return images (N, 3, H, W) of all datasets."""
    paths = [path for name in SETS for path in choose_photos(name, number)]
    opened = (Image.open(path).convert('RGB') for path in paths)
    return torch.stack([transform(photo) for photo in opened])


@torch.inference_mode()
def predict(model, images):
    """Return the predicted classes, (N,)."""
    return torch.cat([model(part).argmax(1) for part in images.split(20)])


def reduce_seeded(model, method, rate):
    """Return a reduced model; new parameters do not depend on the order."""
    torch.manual_seed(0)
    return mmclca.reduce_tokens(model, method, rate)


def measure(number):
    """Yield one row per network, method and keep rate."""
    for network in NETWORKS:
        model, transform = load(network)
        images = read_photos(transform, number)
        full = predict(model, images)
        for method in (None, *list_methods()):
            for rate in RATES if method else (1.0,):
                reduced = reduce_seeded(model, method, rate)
                same = predict(reduced, images) == full
                yield dict(
                    network=network,
                    method=method or 'none',
                    keep_rate=rate,
                    gmacs=round(mmclca.cost(reduced).gmacs, 3),
                    agreement=round(100 * float(same.float().mean()), 1),
                    photos=len(images),
                )


def measure_speed(rounds):
    """Yield the median speed-ups over timm's DeiT-Tiny, on one thread."""
    model = timm.create_model(NETWORKS['DeiT-Tiny'][0]).eval()
    torch.set_num_threads(1)
    for batch in BATCHES:
        setting = Setting(batch=batch)
        images = setting.images((224, 224))
        models = {None: model, ('none', 1.0): reduce_seeded(model, None, None)}
        for method in TIMED:
            for rate in RATES:
                models[method, rate] = reduce_seeded(model, method, rate)
        steps = {
            name: inference_step(reduced, images, setting)
            for name, reduced in models.items()
        }
        seconds = interleaved_seconds(steps, setting, rounds)
        plain = seconds.pop(None)
        for (method, rate), values in seconds.items():
            ratios = [x / y for x, y in zip(plain, values, strict=True)]
            yield dict(
                method=method,
                keep_rate=rate,
                batch=batch,
                speed_up=round(median(ratios), 2),
            )


def format_row(cells):
    """Return a row of a Markdown table."""
    return f'| {" | ".join(map(str, cells))} |\n'


def format_head(titles):
    """Return the first two rows of a Markdown table."""
    return format_row(titles) + format_row(['---'] * len(titles))


def agreement_table(rows):
    """Return the table of agreement and GMACs, the best method first."""
    rows = rows[rows.method != 'none']
    means = rows.groupby(['method', 'keep_rate'])[['gmacs', 'agreement']]
    means = means.mean()
    at_rate = means.xs(0.7, level='keep_rate')
    order = at_rate.sort_values('agreement', ascending=False).index
    titles = [x for rate in RATES for x in (f'GMACs, {rate:g}', 'same class')]
    table = format_head(['method', *titles])
    for method in order:
        cells = [method]
        for rate in RATES:
            values = means.loc[method, rate]
            each = rows[(rows.method == method) & (rows.keep_rate == rate)]
            percentages = '/'.join(f'{x:.0f}' for x in each.agreement)
            cells += [f'{values.gmacs:.2f}', f'{percentages}%']
        table += format_row(cells)
    return table


def speed_table(rows):
    """Return the table of speed-ups per batch size."""
    rows = rows[rows.method != 'none']
    pairs = [(rate, batch) for rate in RATES for batch in BATCHES]
    titles = [f'{rate:g}, batch {batch}' for rate, batch in pairs]
    table = format_head(['method', *titles])
    values = rows.set_index(['method', 'keep_rate', 'batch']).speed_up
    for method in dict.fromkeys(rows.method):
        cells = [f'{values[method, rate, batch]:.2f}' for rate, batch in pairs]
        table += format_row([method, *cells])
    return table


def write_page(page):
    """Write both tables between the marks of a page."""
    tables = dict(
        agreement=agreement_table(pd.read_csv(TABLE)),
        speed=speed_table(pd.read_csv(SPEEDS)),
    )
    content = page.read_text(encoding='utf-8')
    for name, table in tables.items():
        begin, end = f'<!-- begin {name} -->\n', f'<!-- end {name} -->'
        before, _, after = content.partition(begin)
        content = f'{before}{begin}\n{table}\n{end}{after.partition(end)[2]}'
    replace_text(page, content)


def main():
    parser = cli.Parser(description=__doc__)
    parser.add('--photos', 'photos per dataset', 16, type=int)
    parser.add('--rounds', 'timed passes per model', 11, type=int)
    parser.flag('--measure', 'measure predictions and GMACs again')
    parser.flag('--speed', 'measure the speed again')
    parser.add('--page', 'page to write', Path('docs/timm.md'), type=Path)
    args = parser.parse_args()
    if args.measure:
        replace_text(TABLE, format_csv(pd.DataFrame(measure(args.photos))))
    if args.speed:
        replace_text(
            SPEEDS, format_csv(pd.DataFrame(measure_speed(args.rounds)))
        )
    write_page(args.page)


if __name__ == '__main__':
    cli.run(main)
