# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A class more for a model, without training."""

import os
import shutil
from pathlib import Path

from mmclca.apis import Probe, find_images
from mmclca.checkpoints.downloading import open_checkpoint
from mmclca.checkpoints.stored import stored_config
from mmclca.datasets.photographs import Checked, Photographs, check_photographs
from mmclca.utils.csv_files import read_rows

from .candidates import candidates_of
from .classifier import classifier_config
from .facts import digest
from .job import Job
from .model_folder import ModelFolder
from .preparing import candidate_of, default_device
from .probing import fit_probe, run_probe
from .quiet import Log
from .report import write_report
from .weights import find_weights
from .words import probe_line

# what is written anew, beside what it takes the place of until all is there
WRITTEN = ('probe', 'model', 'threshold', 'evidence', 'table', 'file')


def add_class(
    folder: ModelFolder,
    place: str | os.PathLike,
    name: str | None,
    device: str | None,
) -> dict:
    """Fit the classifier of a model again, to one class more.

    Args:
        folder (ModelFolder): The model, changed when all is done.
        place (str | Path): A folder of photographs of the class.
        name (str, optional): Its name; None: that of the folder.
        device (str, optional): Where the model runs.

    Returns:
        dict: The new facts.

    Raises:
        FileNotFoundError: If there is no such folder, or photographs of the
            other classes are gone.
        ValueError: If it has no photographs.
    """
    facts = folder.read_finished()
    with Log() as log:
        together = joined(read_table(folder), *new_photographs(place, name))
        checked = check_photographs(together)
        _check_kept(facts, checked)
        log.open(folder.log)
        job = _job(folder, facts, checked, device or default_device(), log)
        run_probe(job)
        if facts['final'] == 'trained':
            _refit(job, folder.model)
        _move(job.folder, folder)
        write_report(folder.path)
        probe_line(job)
    return job.facts


def read_table(folder: ModelFolder) -> Photographs:
    """The photographs that a model was fitted to.

    Args:
        folder (ModelFolder): Of the model.

    Raises:
        FileNotFoundError: If some are no longer where they were.
    """
    rows = [x for x in read_rows(folder.table) if x['used'] == 'True']
    gone = [x['path'] for x in rows if not os.path.isfile(x['path'])]
    if gone:
        raise FileNotFoundError(
            f'{len(gone)} of {len(rows)} photographs of the other classes are '
            f'no longer there, as {gone[0]}: put them back, or fit anew to '
            'those that there are'
        )
    facts = folder.read()
    return Photographs(
        paths=[x['path'] for x in rows],
        labels=[facts['classes'].index(x['class']) for x in rows],
        classes=facts['classes'],
        groups=[x['group'] for x in rows] if rows[0]['group'] else None,
        splits=['train'] * len(rows),
        source=facts['source'],
    )


def new_photographs(
    place: str | os.PathLike, name: str | None
) -> tuple[list[str], str]:
    """Paths of the photographs in a folder, and the name of their class.

    Raises:
        FileNotFoundError: If there is no such folder.
        ValueError: If it has no photographs.
    """
    place = Path(place).absolute()
    if not place.is_dir():
        raise FileNotFoundError(
            f'there is no folder {place}: give a folder of photographs of '
            'one class'
        )
    paths = find_images([place])
    if not paths:
        raise ValueError(
            f'{place} has no photographs: give a folder of photographs of '
            'one class'
        )
    return paths, name or place.name


def joined(known: Photographs, paths: list[str], name: str) -> Photographs:
    """Photographs and those of a class, which may be a new one.

    Args:
        known (Photographs): Those that a model was fitted to.
        paths (list[str]): Photographs of a class.
        name (str): Its name.
    """
    new = [path for path in paths if path not in {*known.paths}]
    classes = known.classes + [name] * (name not in known.classes)
    groups = known.groups and known.groups + new  # each another one
    return Photographs(
        paths=known.paths + new,
        labels=known.labels + [classes.index(name)] * len(new),
        classes=classes,
        groups=groups,
        splits=['train'] * (len(known.paths) + len(new)),
        source=known.source,
    )


def _check_kept(facts: dict, checked: Checked) -> None:
    """Refuse to lose a class, or to learn none."""
    classes = checked.photographs.classes
    lost = [name for name in facts['classes'] if name not in classes]
    if lost or checked.photographs.counts() == facts['counts']:
        what = f'{", ".join(lost)} would be lost' if lost else 'nothing is new'
        raise ValueError(f'{what}: {"; ".join(checked.lines())}')


def _job(
    folder: ModelFolder, facts: dict, checked: Checked, device: str, log: Log
) -> Job:
    """A fit whose files lie beside those of the model until it is done."""
    photographs = checked.photographs
    new = ModelFolder(folder.path / 'adding')
    shutil.rmtree(new.path, ignore_errors=True)
    new.path.mkdir()
    new.features = folder.features
    pretrained = find_weights(
        facts['weights']['source'], facts['call']['pixels']
    )
    candidate = candidate_of(facts, candidates_of(pretrained.backbone))
    number = len(photographs.classes)
    changed = dict(
        classes=photographs.classes,
        counts=photographs.counts(),
        photographs=digest(photographs),
        problems=checked.lines(),
        held_out=None,
    )
    if facts['training']:  # its hold-out was of other classes
        changed['training'] = dict(facts['training'], holdout=None)
    return Job(
        new,
        facts | changed,
        checked,
        pretrained,
        candidate,
        classifier_config(pretrained, candidate, number),
        device,
        log,
    )


def _refit(job: Job, trained: Path) -> None:
    """Fit the classifier on a network that was trained."""
    config = stored_config(open_checkpoint(str(trained)))
    config.model.head.num_classes = len(job.classes)
    config.model.head.pop('loss', None)
    probe = Probe(
        config, trained, device=job.device, features_dir=job.folder.features
    )
    fit_probe(job, probe)
    job.save()


def _move(new: ModelFolder, folder: ModelFolder) -> None:
    for name in WRITTEN:
        old, path = vars(folder)[name], vars(new)[name]
        if path.exists():
            os.replace(path, old)
    shutil.rmtree(new.path)
