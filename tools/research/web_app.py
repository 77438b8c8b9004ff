# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare the web app of a model with Python: predictions, time and memory.

Chromium and ONNX Runtime use one thread; the time per photo includes decoding.

``python tools/research/web_app.py MODEL PHOTOS [PHOTOS ...]``
"""

import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from subprocess import DEVNULL, Popen, run
from tempfile import TemporaryDirectory

import psutil
from playwright.sync_api import expect

from mmclca import cli
from mmclca.apis import find_images
from mmclca.benchmark.steps import cpu_name
from mmclca.fitting import FittedModel
from mmclca.utils.files import read_rows

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / 'tools/dev'))

import screenshot_page as drive  # noqa: E402

COLUMNS = (
    'model',
    'runtime',
    'top-1 equal',
    'score differs by',
    'unknown equal',
    'ms per photo',
    'MB',
)


def parse_args():
    parser = cli.Parser(__doc__)
    parser.add('model', 'model folder written by fit', type=Path)
    parser.add('photos', 'files and folders', nargs='+')
    parser.add('--most', 'number of photos', 200, type=int)
    return parser.parse_args()


def in_python(file, photos, table):
    """Classify photos in ONNX Runtime; return seconds and megabytes."""
    command = [sys.executable, ROOT / 'tools/deployment/infer_onnx.py', file]
    command += [*photos, '--threads', '1', '--out', table]
    began = time.perf_counter()
    process = Popen([*map(str, command)], stdout=DEVNULL)
    used = os.wait4(process.pid, 0)[2]
    return time.perf_counter() - began, used.ru_maxrss / 1024


def in_chromium(folder, photos, table):
    """Classify photos in the app; return seconds and megabytes."""
    with drive.served(folder) as address, drive.browser() as browser:
        page = browser.new_page()
        page.goto(address)
        drive.identify(page, photos[0])  # loads the model
        page.on('dialog', lambda dialog: dialog.accept())
        page.click('#clear')
        began = time.perf_counter()
        page.set_input_files('#files', photos)
        message = f'Identified {len(photos)} of {len(photos)}'
        expect(page.locator('#status')).to_have_text(message, timeout=600_000)
        seconds, memory = time.perf_counter() - began, renderer_memory()
        with page.expect_download() as download:
            page.click('#export')
        download.value.save_as(table)
    return seconds, memory


def renderer_memory():
    """Return the memory of the largest page of Chromium in megabytes."""
    children = psutil.Process().children(recursive=True)
    pages = [x for x in children if '--type=renderer' in x.cmdline()]
    return max(page.memory_info().rss for page in pages) / 2**20


def compare(table, expected):
    """Return the cells that compare a table with ``FittedModel.predict``."""
    rows = read_rows(table)
    pairs = [*zip(rows, expected, strict=True)]
    same = [a['pred_class'] == b['pred_class'] for a, b in pairs]
    agrees = [(a['known'] == 'yes') == b['known'] for a, b in pairs]
    scores = [abs(float(a['pred_score']) - b['pred_score']) for a, b in pairs]
    shares = [f'{sum(x) / len(x):.1%}' for x in (same, agrees)]
    return shares[0], f'{max(scores):.1g}', shares[1]


def make_rows(args, photos, folder):
    """Yield a row per model and runtime."""
    expected = FittedModel(args.model, 'cpu').predict(photos)
    table, number = folder / 'found.csv', len(photos)
    for name, option in (('32 bits', ['--float']), ('8 bits', [])):
        command = [
            'export',
            args.model,
            '--web',
            *option,
            '--out',
            folder / name,
        ]
        command = [sys.executable, '-m', 'mmclca', *map(str, command)]
        run(command, check=True, stdout=DEVNULL)
        file = folder / name / 'model.onnx'
        start, _ = in_python(file, photos[:1], table)
        seconds, memory = in_python(file, photos, table)
        seconds = (seconds - start) * number / (number - 1)
        cells = compare(table, expected)
        yield name, 'Python', *cells, 1e3 * seconds / number, memory
        seconds, memory = in_chromium(folder / name, photos, table)
        cells = compare(table, expected)
        yield name, 'Chromium', *cells, 1e3 * seconds / number, memory


def main():
    args = parse_args()
    photos = [*find_images(args.photos)]
    photos = photos[:: max(1, len(photos) // args.most)][: args.most]
    print(f'{len(photos)} photos, {cpu_name()}')
    print(f'onnxruntime {version("onnxruntime")}')
    print('|', ' | '.join(COLUMNS), '|')
    with TemporaryDirectory() as folder:
        for *cells, time_, memory in make_rows(args, photos, Path(folder)):
            children = *cells, f'{time_:.0f}', f'{memory:.0f}'
            print('|', ' | '.join(children), '|', flush=True)


if __name__ == '__main__':
    main()
