# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path

from mmclca.apis import TokenReductionInferencer, find_images
from mmclca.apis.inferencer import ANSWER
from mmclca.checkpoints.fitted import model_file
from mmclca.datasets.photographs import (
    Photographs,
    check_photographs,
    read_photographs,
)

from .model import parse_budget
from .record import FitRecord, ModelFolder
from .screen import Log
from .steps import do_steps


def fit(
    photographs: str | PathLike,
    out: str | PathLike = 'model',
    budget: str | None = None,
    weights: str | None = None,
    labels: str | PathLike | None = None,
    groups: str | None = None,
    folds: int = 5,
    probe_only: bool = False,
    class_weights: str | None = None,
    overwrite: bool = False,
    pixels: str | None = None,
    device: str | None = None,
) -> 'FittedModel':
    """Fit a model to photographs, and say how good it is.

    First a classifier on the network as it came, in seconds; then, where
    that pays, the network is trained on from it. The same call resumes one
    that was interrupted.

    Args:
        photographs (str | Path): A folder with a folder a class in it, or
            with such folders in ``train``, ``val`` and ``test``, of which
            the last two are only measured on; see
            :func:`mmclca.datasets.photographs.read_photographs`.
        out (str | Path): Folder of the model. Defaults to 'model'.
        budget (str, optional): What a photograph may cost, such as
            '0.5GMACs' or '20ms' on this machine. Defaults to None: half of
            what the whole transformer costs.
        weights (str, optional): A file, or ``timm://NAME``. Defaults to
            None: DeiT-Tiny's of timm.
        labels (str | Path, optional): A table of file and class.
            Defaults to None: folders name the classes.
        groups (str, optional): What photographs of one thing have in common:
            a regular expression, or a column of the table. Defaults to None.
        folds (int): Parts of the estimate. Defaults to 5.
        probe_only (bool): Whether to leave the network as it came.
            Defaults to False.
        class_weights (str, optional): 'balanced' for classes that count
            alike. Defaults to None: photographs count alike.
        overwrite (bool): Whether to replace what another call has written.
            Defaults to False.
        pixels (str, optional): 'imagenet' or 'half', how the pixels that the
            weights know were normalized. Defaults to None: as timm says.
        device (str, optional): Where it runs. Defaults to None: on a GPU if
            there is one.

    Returns:
        FittedModel: What the folder holds, ready to predict.

    Raises:
        FileNotFoundError: If photographs, table or weights are not there.
        ValueError: If they are of no use, ``out`` is of another call, or no
            model is within the budget; says what to do.
    """
    call = dict(
        photographs=os.path.abspath(photographs),
        budget=budget,
        weights=weights and str(weights),
        labels=labels and os.path.abspath(labels),
        groups=groups,
        folds=folds,
        class_weights=class_weights,
        pixels=pixels,
    )
    if budget is not None:
        parse_budget(budget)
    files = ModelFolder(out)
    with Log() as log:
        found = read_photographs(call['photographs'], call['labels'], groups)
        checked = check_photographs(found)
        record = FitRecord.of_call(call, checked)
        if not overwrite:
            record = files.known(record) or record
        do_steps(files, record, checked, device, log, overwrite, probe_only)
    return FittedModel(out, device)


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
        model_file(folder)
        self._files, self._device = ModelFolder(folder), device
        self._record = self._files.read()

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self._files.path

    @property
    def facts(self) -> dict:
        """The content of fit.json."""
        return vars(self._record)

    @property
    def classes(self) -> list[str]:
        """Names of its classes."""
        return self._record.classes

    @property
    def accuracy(self) -> float | None:
        """Share of photographs it has not seen that it names right, 0 to 1.

        None where there are too few photographs to measure it.
        """
        return self._record.best['accuracy']

    @cached_property
    def _inferencer(self) -> TokenReductionInferencer:
        return TokenReductionInferencer(self.folder, device=self._device)

    def predict(self, photographs, batch_size: int = 32) -> list[dict]:
        """Predict what is on photographs.

        Args:
            photographs (str | Path | np.ndarray | Sequence): Files, folders,
                patterns or arrays, see :class:`TokenReductionInferencer`.
            batch_size (int): Photographs at a time. Defaults to 32.

        Returns:
            list[dict]: Of each ``image`` (its path), ``pred_class``, the best
            class, and ``pred_score``, its probability; ``known``: whether it
            is of a class that the model knows, by its ``known_score`` (both
            None where fit chose no threshold). Where one cannot be read
            ``image`` and ``error``, which says why.
        """
        found = self._inferencer.stream(photographs, batch_size)
        names = ('image', *ANSWER, 'error')
        return [{x: row[x] for x in names if x in row} for row in found]

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
        files, place = self._files, Path(photographs).absolute()
        had, name = files.read(), name or place.name
        with Log() as log:
            checked = check_photographs(_joined(files, had, place, name))
            record = had.of_photographs(checked)
            _check_learned(had, record, name)
            if record.counts != had.counts:
                training = had.training and dict(had.training, holdout=None)
                fresh = dict(probe=None, held_out=None, training=training)
                record = replace(record, **fresh)
            else:
                known = f'The model knows all photographs of {name} already'
                log.tell_user(known)
            files.discard_draft()
            record = do_steps(files, record, checked, self._device, log)
        self._record = record
        vars(self).pop('_inferencer', None)


def _joined(
    files: ModelFolder, record: FitRecord, place: Path, name: str
) -> Photographs:
    """Join what a model was fitted to and a folder of a class, maybe new."""
    advice = 'give a folder of photographs of one class'
    if not place.is_dir():
        raise FileNotFoundError(f'there is no folder {place}: {advice}')
    rows = files.used_rows()
    known = [row['path'] for row in rows]
    gone = [path for path in known if not os.path.isfile(path)]
    if gone:
        raise FileNotFoundError(
            f'{len(gone)} of {len(rows)} photographs of the other classes are '
            f'no longer there, as {gone[0]}: put them back, or fit anew to '
            'those that there are'
        )
    found = find_images([place])
    if not found:
        raise ValueError(f'{place} has no photographs: {advice}')
    new = [path for path in found if path not in known]
    names = [row['class'] for row in rows] + [name] * len(new)
    groups = None
    if rows[0]['group']:  # each new one is another
        groups = [row['group'] for row in rows] + new
    paths, source = known + new, record.source
    joined = Photographs.named(paths, names, source, record.classes)
    return replace(joined, groups=groups, splits=['train'] * len(names))


def _check_learned(had: FitRecord, record: FitRecord, name: str) -> None:
    """Refuse photographs that teach nothing, or by which a class is lost."""
    lost = [x for x in had.classes if x not in record.classes]
    if lost or name not in record.classes:
        what = f'{", ".join(lost)} would be lost' if lost else 'nothing is new'
        raise ValueError(f'{what}: {"; ".join(record.problems)}')
