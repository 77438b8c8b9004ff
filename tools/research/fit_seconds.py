# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Measure seconds and memory per step while ``fit`` reads synthetic leaves.

Each ``fit`` runs without fine-tuning, in its own process, on new photos in at
least 40 classes with up to 50 photos. Each progress bar is a step, until the
next bar. CPU seconds are summed over threads; other programs hardly change
them. On Linux only.

``python tools/research/fit_seconds.py 120 1200 5000 20000 --out seconds.csv``
"""

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from mmclca import cli
from mmclca.benchmark import peak_memory
from mmclca.cli.arguments import positive
from mmclca.datasets.synthetic_leaves.data_set import draw_data_set
from mmclca.page.process import COMMAND
from mmclca.utils.events import (
    ErrorEvent,
    ProgressEvent,
    ResultEvent,
    StepEvent,
    read_events,
)

MIN_CLASSES, PER_CLASS, SIDE = 40, 50, 224
START, TOTAL = 'Starting', 'total'


def main():
    """Print and write one row per number of photos."""
    parser = cli.Parser(__doc__)
    parser.add('photos', 'numbers of photos', nargs='+', type=positive)
    parser.add('--weights FILE', 'pretrained weights (default: those of fit)')
    parser.add('--folder', 'folder that keeps photos and models', type=Path)
    parser.add('--out', 'table to write', Path('fit_seconds.csv'), type=Path)
    args = parser.parse_args()
    tables = []
    for number in args.photos:
        with TemporaryDirectory() as temporary:
            folder = Path(args.folder or temporary, str(number))
            tables.append(measure(number, folder, args.weights))
        table = pd.concat(tables)
        table.to_csv(args.out, index=False, float_format='%.1f')
    keys = ['step', 'photos']
    table = table.set_index(keys).drop(columns='classes')
    print(table.unstack().round(1).to_string())


def measure(number, folder, weights=None):
    """Return a table with a row per step, and one for all steps."""
    classes = max(MIN_CLASSES, number // PER_CLASS)
    per_class = number // classes
    if not folder.exists():
        draw_photos(folder, classes, per_class)
    settings = dict(
        photos=str(folder / 'images'),
        out=str(folder / 'model'),
        probe_only=True,
    )
    if weights:
        settings['weights'] = str(Path(weights).absolute())
    steps = pd.DataFrame(run_fit(settings)).groupby('step', sort=False)
    table = steps[['seconds', 'cpu_seconds']].sum()
    table.loc[TOTAL] = table.sum()
    peaks = steps.peak_mib.max()
    table['peak_mib'] = peaks.reindex(table.index, fill_value=peaks.max())
    table.insert(0, 'photos', classes * per_class)
    table.insert(1, 'classes', classes)
    return table.reset_index()


def draw_photos(folder, classes, per_class):
    """Draw synthetic leaves into ``folder/images``."""
    options = dict(
        classes=classes,
        species=1,
        per_class=per_class,
        per_plant=1,
        size=SIDE,
        seed=0,
        difference=1.0,
        # fit does not read the lists
        val_fraction=0.5,
        test_fraction=0.0,
    )
    draw_data_set(folder, options)


def run_fit(settings):
    """Fit in a process; yield seconds and peak memory between its events."""
    process = subprocess.Popen(
        [*COMMAND, 'fit', json.dumps(settings)],
        stdin=subprocess.PIPE,  # its end would stop the process
        stdout=subprocess.PIPE,
    )
    with process:
        step, before = START, Usage.read(process.pid)
        for event in read_events(process.stdout):
            if isinstance(event, ErrorEvent):
                raise RuntimeError(event.message)
            if isinstance(event, ResultEvent):
                continue  # the process may have ended
            now = Usage.read(process.pid)
            yield dict(step=step, **now.since(before))
            before = now
            if isinstance(event, StepEvent):
                step = event.step
            elif isinstance(event, ProgressEvent):
                step = event.title
    if process.returncode:
        raise RuntimeError(f'fit ended with code {process.returncode}')


@dataclass(frozen=True)
class Usage:
    """Time and memory that a process has used.

    Args:
        wall (float): Seconds of a clock.
        cpu (float): CPU seconds, over all threads.
        peak (float): Peak memory in MiB.
    """

    wall: float
    cpu: float
    peak: float

    @classmethod
    def read(cls, pid):
        """Read the files in ``/proc``."""
        process = Path('/proc', str(pid))
        # after the name, which may contain spaces
        fields = process.joinpath('stat').read_text('utf-8').rpartition(')')[2]
        user, system = map(int, fields.split()[11:13])
        return cls(
            time.perf_counter(),
            (user + system) / os.sysconf('SC_CLK_TCK'),
            peak_memory.read_resident('VmHWM', process) / 2**20,
        )

    def since(self, before):
        """Return seconds since then, and the peak memory so far."""
        return dict(
            seconds=self.wall - before.wall,
            cpu_seconds=self.cpu - before.cpu,
            peak_mib=self.peak,
        )


if __name__ == '__main__':
    cli.run(main)
