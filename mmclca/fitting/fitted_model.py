# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from functools import cached_property
from os import PathLike
from os.path import isfile
from pathlib import Path

from mmclca.apis import Probe, TokenReductionInferencer, find_images
from mmclca.apis.inferencer import answer_of
from mmclca.apis.loading import config_and_weights
from mmclca.checkpoints.fitted import threshold_file
from mmclca.datasets.photographs import Checked, Photographs, check_photographs

from .job import Job, make_job
from .model_folder import ModelFolder
from .probing import fit_classifier, run_probe, write_model
from .record import FitRecord
from .report import write_report
from .report.folder import used_rows
from .screen import Log
from .words import say_accuracy


class FittedModel:
    """A model that :func:`mmclca.fitting.fit` wrote.

    Args:
        folder (str | Path): Its folder.
        device (str, optional): Where it runs. Defaults to None: on a GPU if
            there is one.

    Raises:
        FileNotFoundError: If there is no such model.
        ValueError: If its fit.json is damaged.

    Example:
        >>> from mmclca import fit
        >>> model = fit('photographs/', 'model/')
        >>> model.predict('new/')[0]['pred_class']
    """

    def __init__(
        self, folder: str | PathLike, device: str | None = None
    ) -> None:
        self._files = ModelFolder(folder)
        self._device = device
        self._record = self._files.read_finished()

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self._files.path

    @property
    def facts(self) -> dict:
        """What fit.json says of it."""
        return vars(self._record)

    @property
    def classes(self) -> list[str]:
        """Names of its classes."""
        return self._record.classes

    @property
    def accuracy(self) -> float | None:
        """Share of photographs it has not seen that it names right, 0 to 1.

        None where the photographs cannot tell.
        """
        return self._record.best['accuracy']

    @cached_property
    def _inferencer(self) -> TokenReductionInferencer:
        return TokenReductionInferencer(
            self._files.model,
            device=self._device,
            reject=threshold_file(self.folder),
        )

    def predict(self, photographs, batch_size: int = 32) -> list[dict]:
        """Name what is on photographs.

        Args:
            photographs (str | Path | np.ndarray | Sequence): Files, folders,
                patterns or arrays, see :class:`TokenReductionInferencer`.
            batch_size (int): Photographs at a time. Defaults to 32.

        Returns:
            list[dict]: Of each ``image`` (its path), ``pred_class``, the best
            class, and ``pred_score``, its probability; ``known``: whether it
            is of a class that the model knows, by its ``known_score`` (both
            None where fit could not tell). Where one cannot be read
            ``image`` and ``error``, which says why.
        """
        results = self._inferencer.stream(photographs, batch_size)
        return [
            result
            if 'error' in result
            else dict(image=result['image'], **answer_of(result))
            for result in results
        ]

    def add_class(
        self, photographs: str | PathLike, name: str | None = None
    ) -> None:
        """Teach the model a class, or more photographs of one.

        The classifier is fitted again, to all photographs; the network stays
        as it is.

        Args:
            photographs (str | Path): A folder of photographs of one class.
            name (str, optional): Its name. Defaults to None, that of the
                folder.

        Raises:
            FileNotFoundError: If there is no such folder, or photographs of
                the other classes are gone.
            ValueError: If it has no photographs. The model stays as it was.
        """
        files = self._files
        record = files.read_finished()
        place = Path(photographs).absolute()
        name, paths = name or place.name, _photographs_in(place)
        with Log() as log:
            found = _joined(files.table, record, paths, name)
            checked = check_photographs(found)
            files.discard_draft()
            files.remove_partial_files()
            if _is_new(record, checked, name):
                log.open(files.log)
                record = record.of_photographs(checked)
                job = make_job(files, record, checked, self._device, log)
                _fit_again(job)
                self._record = job.record
            else:  # a run that was killed may have done all but the report
                log.tell_user(
                    f'The model knows all photographs of {name} already'
                )
            write_report(files.path)
        vars(self).pop('_inferencer', None)


def _photographs_in(place: Path) -> list[str]:
    advice = 'give a folder of photographs of one class'
    if not place.is_dir():
        raise FileNotFoundError(f'there is no folder {place}: {advice}')
    paths = find_images([place])
    if not paths:
        raise ValueError(f'{place} has no photographs: {advice}')
    return paths


def _joined(
    table: Path, record: FitRecord, new: list[str], name: str
) -> Photographs:
    """Those that a model was fitted to, and those of a class, maybe new."""
    rows = used_rows(table)
    gone = [row['path'] for row in rows if not isfile(row['path'])]
    if gone:
        raise FileNotFoundError(
            f'{len(gone)} of {len(rows)} photographs of the other classes are '
            f'no longer there, as {gone[0]}: put them back, or fit anew to '
            'those that there are'
        )
    paths = [row['path'] for row in rows]
    labels = [row['class'] for row in rows]
    groups = [row['group'] for row in rows] if rows[0]['group'] else None
    new = [path for path in new if path not in paths]
    labels += [name] * len(new)
    classes = record.classes + [name] * (name not in record.classes)
    return Photographs(
        paths=paths + new,
        labels=[classes.index(label) for label in labels],
        classes=classes,
        groups=groups and groups + new,  # each another one
        splits=['train'] * len(labels),
        source=record.source,
    )


def _is_new(record: FitRecord, checked: Checked, name: str) -> bool:
    """Whether anything is new of a class that is learned already."""
    photographs = checked.photographs
    lost = [x for x in record.classes if x not in photographs.classes]
    known = photographs.counts() == record.counts
    if lost or (known and name not in record.classes):
        what = f'{", ".join(lost)} would be lost' if lost else 'nothing is new'
        raise ValueError(f'{what}: {"; ".join(checked.lines())}')
    return not known


def _fit_again(job: Job) -> None:
    """Fit the classifier to all photographs, and publish the model."""
    training, parts = job.record.training, run_probe(job)
    if job.record.final == 'trained':
        parts['threshold'] = _fit_trained(job)
    if training:  # its hold-out was of other classes
        parts['training'] = dict(training, holdout=None)
    job.publish(held_out=None, **parts)
    say_accuracy(job)


def _fit_trained(job: Job) -> dict:
    """Fit the classifier on the network that was trained; its threshold."""
    config, weights = config_and_weights(job.folder.model, None)
    config.model.head.num_classes = len(job.classes)
    config.model.head.pop('loss', None)
    features = job.folder.features
    probe = Probe(config, weights, device=job.device, features_dir=features)
    found, _ = fit_classifier(job, probe, job.training)
    return write_model(job.folder.draft, probe, found)
