# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A class more for a model, without training."""

import os
from pathlib import Path

from mmclca.apis import Probe, find_images
from mmclca.apis.loading import config_and_weights
from mmclca.datasets.photographs import Checked, Photographs, check_photographs

from .facts import digest
from .job import Job
from .model_folder import ModelFolder
from .preparing import job_of
from .probing import fit_probe, run_probe
from .quiet import Log
from .report import write_report
from .report.folder import used_rows
from .words import probe_line


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
        dict: The new facts; those of before if the model knows all of the
        photographs.

    Raises:
        FileNotFoundError: If there is no such folder, or photographs of the
            other classes are gone.
        ValueError: If it has no photographs.
    """
    facts = folder.read_finished()
    paths, name = new_photographs(place, name)
    with Log() as log:
        checked = check_photographs(joined(read_table(folder), paths, name))
        folder.discard_draft()
        folder.remove_partial_files()
        if _is_new(facts, checked, name):
            facts = _fit(folder, facts, checked, device, log)
        else:  # a run that was killed may have done all but the report
            log.tell_user(f'The model knows all photographs of {name} already')
        write_report(folder.path)
    return facts


def read_table(folder: ModelFolder) -> Photographs:
    """The photographs that a model was fitted to.

    Args:
        folder (ModelFolder): Of the model.

    Raises:
        FileNotFoundError: If some are no longer where they were.
    """
    rows = used_rows(folder.table)
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


def _is_new(facts: dict, checked: Checked, name: str) -> bool:
    """Whether anything is new of a class that is learned already.

    Raises:
        ValueError: If a class would be lost, or none learned.
    """
    classes = checked.photographs.classes
    lost = [name for name in facts['classes'] if name not in classes]
    known = checked.photographs.counts() == facts['counts']
    if lost or (known and name not in facts['classes']):
        what = f'{", ".join(lost)} would be lost' if lost else 'nothing is new'
        raise ValueError(f'{what}: {"; ".join(checked.lines())}')
    return not known


def _fit(
    folder: ModelFolder, facts: dict, checked: Checked, device, log: Log
) -> dict:
    """Fit the model of before to all photographs; gives the new facts."""
    log.open(folder.log)
    job = job_of(
        folder, facts | _changed(facts, checked), checked, device, log
    )
    run_probe(job)
    if facts['final'] == 'trained':
        _refit(job)
    job.publish()
    probe_line(job)
    return job.facts


def _changed(facts: dict, checked: Checked) -> dict:
    """The facts that are of other photographs now."""
    photographs, training = checked.photographs, facts['training']
    return dict(
        classes=photographs.classes,
        counts=photographs.counts(),
        photographs=digest(photographs),
        problems=checked.lines(),
        held_out=None,
        # its hold-out was of other classes
        training=training and dict(training, holdout=None),
    )


def _refit(job: Job) -> None:
    """Fit the classifier on the network that was trained."""
    config, weights = config_and_weights(job.folder.model, None)
    config.model.head.num_classes = len(job.classes)
    config.model.head.pop('loss', None)
    probe = Probe(
        config, weights, device=job.device, features_dir=job.folder.features
    )
    fit_probe(job, probe)
