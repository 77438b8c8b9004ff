# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare fit with other libraries: accuracy, CPU time, size of the result.

Every library trains on three photos per class with the weights of ViT-Tiny,
and predicts all test photos, dataset by dataset; a stopped program continues.
``MMCLCA_FOREIGN_PYTHON`` names a Python with AutoGluon MultiModal, fastai, and
timm with scikit-learn; a missing library is named in one line. All libraries
run without a network.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pandas as pd
import torch
from frozen import FILES, WEIGHTS, read_dataset
from tables import half_width, kept, read, read_machine
from training_subsets import draw, get_labels

from mmclca import cli

STUDY = 'alternatives'
# kinds of classes: diseases, fungi, cultivars, weeds, flowers, leaves
DATASETS = ('grape5', 'mushroom10', 'cotton5', 'seedlings12', 'flower17')
DATASETS += ('leafsnap27', 'coffee5', 'chilli4')
FIT = 'fit'
AUTOGLUON = 'autogluon.multimodal', 'timm'
# library: packages with a version, commands or lines of code that train,
# predict and save
LIBRARIES = {
    FIT: (('mmclca',), '2 commands'),
    'scikit-learn': (('scikit-learn', 'timm'), '12 lines of Python'),
    'fastai': (('fastai', 'timm'), '6 lines of Python'),
    'autogluon-few-shot': (AUTOGLUON, '3 lines of Python'),
    'autogluon': (AUTOGLUON, '3 lines of Python'),
}
PYTHON = os.environ.get('MMCLCA_FOREIGN_PYTHON', sys.executable)
PROGRAM = Path(__file__).with_name('alternatives_foreign.py')
VIT_TINY = FILES['vit-tiny-p16']
OFFLINE = dict(HF_HUB_OFFLINE='1', CUDA_VISIBLE_DEVICES='', MPLBACKEND='agg')


@dataclass(frozen=True)
class Photos:
    """Folders for one comparison.

    Args:
        train (Path): Training photos, a folder per class.
        test (Path): Test photos.
        out (Path): Folder for the result, which does not exist.
    """

    train: Path
    test: Path
    out: Path


@dataclass(frozen=True)
class Comparison:
    """Accuracy by dataset and library.

    Args:
        rows (DataFrame): Measured rows.
    """

    rows: pd.DataFrame

    @property
    def libraries(self):
        """Measured libraries."""
        return [x for x in LIBRARIES if x in {*self.rows.library}]

    @property
    def accuracies(self):
        """Accuracy in percent, without datasets that lack a library."""
        table = self.rows.pivot(
            index='set', columns='library', values='accuracy'
        )
        return table[self.libraries].dropna()

    def summarize(self, library):
        """Return means, and the difference to ``fit`` over datasets."""
        accuracies = self.accuracies
        gains = accuracies[library] - accuracies[FIT]
        rows = self.rows[self.rows.library == library]
        rows = rows[rows.set.isin(accuracies.index)]
        costs = rows[['cpu_seconds', 'megabytes']].mean()
        return dict(
            costs,
            accuracy=accuracies[library].mean(),
            datasets=len(accuracies),
            gain=gains.mean(),
            half_width=half_width(gains),
            better=gains[gains > 0].to_dict(),
            versions=rows.versions.iloc[0],
        )


def values():
    """Return the values for the template."""
    comparison = Comparison(read(STUDY))
    return dict(
        facts=read_machine(STUDY),
        accuracies=comparison.accuracies,
        summaries={x: comparison.summarize(x) for x in comparison.libraries},
        effort={library: effort for library, (_, effort) in LIBRARIES.items()},
    )


def main():
    parser = cli.Parser(description=__doc__)
    which = f'datasets (default: {" ".join(DATASETS)})'
    parser.add('datasets', which, nargs='*', default=DATASETS)
    args = parser.parse_args()
    wanted = [
        (dict(library=library, set=name), (library, name))
        for name in args.datasets
        for library in LIBRARIES
    ]
    print(kept(STUDY, measure, wanted).to_string(index=False))


def measure(library, name):
    """Return a row for a library and a dataset, none if it is missing."""
    packages, _ = LIBRARIES[library]
    versions = find_versions(library, packages)
    if versions is None:
        print(f'{library}: {PYTHON} has no {" or no ".join(packages)}')
        return []
    with tempfile.TemporaryDirectory() as folder:
        photos = copy_photos(name, Path(folder))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = run_fit if library == FIT else run_foreign
        accuracy = run(library, photos)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        files = [x for x in photos.out.rglob('*') if x.is_file()]
        size = sum(x.stat().st_size for x in files) / 1e6
    seconds = after.ru_utime + after.ru_stime
    seconds -= before.ru_utime + before.ru_stime
    row = dict(accuracy=round(accuracy, 2), cpu_seconds=round(seconds, 1))
    return [row | dict(megabytes=round(size, 1), versions=versions)]


def find_versions(library, packages):
    """Return the versions of packages, None if one is missing."""
    if library == FIT:
        return f'mmclca {metadata.version("mmclca")}'
    code = 'import sys; from importlib.metadata import version\n'
    code += 'print(*[f"{x} {version(x)}" for x in sys.argv[1:]], sep=", ")'
    command = [PYTHON, '-c', code, *packages]
    asked = subprocess.run(command, capture_output=True, text=True)
    return None if asked.returncode else asked.stdout.strip()


def copy_photos(name, folder):
    """Copy three training photos per class, and all test photos."""
    dataset = read_dataset(name)
    labels, tested = get_labels(dataset)
    drawn, new = draw(labels, ~tested, 3, 0), torch.where(tested)[0]
    parts = dict(train=drawn, test=new)
    for part, positions in parts.items():
        for path in map(Path, dataset.path[positions.numpy()]):
            place = folder / part / path.parent.name
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
    return Photos(folder / 'train', folder / 'test', folder / 'out')


def run_fit(_, photos):
    """Run ``fit`` and ``predict``; return the accuracy in percent."""
    out, results = str(photos.out), photos.test.with_name('results.csv')
    program = [sys.executable, '-m', 'mmclca']
    weights = ['--weights', str(WEIGHTS / VIT_TINY)]
    call([*program, 'fit', str(photos.train), '--out', out, *weights])
    call([*program, 'predict', out, str(photos.test), '--out', str(results)])
    table = pd.read_csv(results)
    names = [Path(x).parent.name for x in table.iloc[:, 0]]
    return 100 * (table['pred_class'] == names).mean()


def run_foreign(library, photos):
    """Run another library; return the accuracy in percent."""
    weights = str((WEIGHTS / VIT_TINY).resolve())
    folders = [str(photos.train), str(photos.test), str(photos.out)]
    # -P: its modules may have the names of our programs
    command = [PYTHON, '-P', str(PROGRAM), library, *folders, weights]
    return json.loads(call(command).splitlines()[-1])['accuracy']


def call(command):
    """Run a command offline on one thread; return its output."""
    environment = os.environ | OFFLINE | dict(OMP_NUM_THREADS='1')
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f'{" ".join(command)}\n{done.stderr[-2000:]}')
    return done.stdout


if __name__ == '__main__':
    cli.run(main)
