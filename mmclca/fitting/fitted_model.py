# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit a model to photos, load it, predict with it and add classes."""

import os
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import mmclca.registry  # noqa: F401, quiet, so before mmpretrain
from mmclca.apis import TokenReductionInferencer, find_images
from mmclca.apis.features import digest_of_file
from mmclca.apis.inferencer import PREDICTION
from mmclca.benchmark.timing import find_runtime
from mmclca.checkpoints.model_folder import ModelFolder, PhotoRow
from mmclca.datasets.levels import read_level
from mmclca.datasets.photos import LabeledImages, check_photos, read_photos
from mmclca.errors import Error
from mmclca.utils.messages import join_first

from . import screen, training
from .choice import choose_plan
from .confirmation import ConfirmationError, check_accuracy, check_name
from .log import Log, Step, find_log
from .model import Plan, compute_cost, make_plan, measure_latency
from .options import FitKeywords, FitOptions, show_options
from .probing import describe_coarse, join_near_duplicates, run_probe
from .record import FitFolder, FitRecord
from .report import write_report

if TYPE_CHECKING:
    from typing_extensions import Unpack


@show_options
def fit(
    photos: str | PathLike,
    out: str | PathLike = 'model',
    **options: 'Unpack[FitKeywords]',
) -> 'FittedModel':
    """Fit an image classifier to photos and estimate its accuracy.

    First fit a linear probe on the pretrained backbone, in seconds. Then
    fine-tune the backbone if there are enough photos to decide whether this
    helps. The same call resumes an interrupted one.

    Args:
        photos (str | Path): Folder with one folder per class, or with
            such folders in ``train``, ``val`` and ``test``; photos in
            ``val`` and ``test`` are used for testing only. See
            :func:`mmclca.datasets.photos.read_photos`.
        out (str | Path): Folder of the model. Defaults to 'model'.
        **options: Fields of :class:`mmclca.fitting.options.FitOptions`, such
            as ``weights``, ``groups`` and ``fine_tune``.

    Returns:
        FittedModel: The model, ready to predict.

    Raises:
        FileNotFoundError: If photos, table or weights are missing.
        Error: If the photos or options are invalid, ``out`` holds
            another model, or no model is within the budget.
    """
    settings = FitOptions(**options)
    if settings.runtime is not None:
        find_runtime(settings.runtime, 'cpu')
    coarse_classes = settings.coarse and read_level(settings.coarse)
    call = dict(photos=os.path.abspath(photos), **settings.recorded)
    files = FitFolder(out)
    with find_log() as log:
        log.begin(Step.CHECK)
        found = read_photos(call['photos'], settings.labels, settings.groups)
        checked = check_photos(found)
        if not settings.overwrite:
            files.check_available()
        with files.locked():
            record = FitRecord.of_call(call, checked)
            if not settings.overwrite:
                record = files.known(record) or record
            exports = files.exports()
            record = replace(record, name=settings.name or record.name)
            plan, record = choose_plan(files, record, checked, settings.device)
            tune = False if settings.probe_only else settings.fine_tune or None
            record = do_steps(plan, record, log, settings.overwrite, tune)
            if coarse_classes:
                log.print(describe_coarse(plan, coarse_classes))
            log.print(*screen.saved_lines(files.path, exports, log.is_console))
            record = describe_model(plan, record, log)
            if not (settings.probe_only or record.training):
                log.print(*_skipped_lines(plan, log))
        if settings.compare:
            log.print(*screen.comparison_lines(plan, record))
    return FittedModel(out, settings.device)


def do_steps(
    plan: Plan,
    record: FitRecord,
    log: Log,
    overwrite: bool = False,
    tune: bool | None = False,
    opened: Collection[str] = (),
    check: Callable[[FitRecord], None] | None = None,
) -> FitRecord:
    """Run all steps missing from the record, except the latency.

    Each step returns some facts, which are written immediately.
    Nothing is written before the model is selected. ``tune`` requests a
    fine-tuning, None leaves it to the number of photos; ``opened`` are known
    photos that the report may open. ``check`` gets the record of the linear
    probe, and raises an error to keep the previous model.
    """
    files, checked = plan.files, plan.checked
    if not checked.unopened:
        record = replace(record, **plan.facts())
    if overwrite:
        files.clear()
    files.begin(record)
    log.open(files.log)
    log.begin(Step.FIRST_MODEL)
    began, before = time.perf_counter(), record.seconds
    log.print(*screen.start_lines(plan, record))
    if record.cost is None:
        record = files.add(record, cost=compute_cost(plan))
    problems = record.problems
    record = files.add(join_near_duplicates(plan, record))
    new = [problem for problem in record.problems if problem not in problems]
    log.print(*screen.problem_lines(new))
    log.print(*screen.series_lines(record))
    if record.probe is None:
        is_trained = record.final == 'trained'
        record = files.add(record, **run_probe(plan, is_trained))
    if check:
        check(record)
    # training writes outside this draft
    record = files.publish(record, final=record.final or 'probe')
    if record.training:
        log.print(screen.tuning_line(record))
    elif tune is not False and not _why_skipped(plan, tune):
        log.print(screen.probe_line(record))
        record = files.publish(record, **training.fine_tune(plan, record, log))
    seconds = before + time.perf_counter() - began
    record = files.publish(record, seconds=seconds)
    _report(plan, log, opened)
    if record.training:  # checkpoints take three times the model's space
        files.remove_training()
    log.print(*screen.result_lines(record, log.is_console))
    return record


def _why_skipped(plan: Plan, tune: bool | None) -> str:
    why_not = training.why_impossible(plan)
    return why_not or ('' if tune else training.why_skipped(plan.training))


def _skipped_lines(plan: Plan, log: Log) -> Iterator[str]:
    """Describe why fine-tuning was skipped, and how to request it."""
    yield screen.row(training.LABEL, f'skipped: {_why_skipped(plan, None)}')
    if log.is_console and not training.why_impossible(plan):
        yield screen.row('', 'to fine-tune anyway, in minutes: --fine-tune')


def _report(plan: Plan, log: Log, opened: Collection[str] = ()) -> None:
    """Write the report; ``opened`` are known photos that it may open."""
    checked = plan.checked
    with log.status('Writing the report'):
        unopened = checked.unopened.keys() - opened
        write_report(plan.files.path, checked.digests.keys() - unopened)


def describe_model(
    plan: Plan, record: FitRecord, log: Log, opened: Collection[str] = ()
) -> FitRecord:
    """Describe the model, and measure its latency unless it is known.

    This is the last step, since it takes long and changes no prediction:
    after an interruption, model and report are complete.
    """
    log.print(*screen.model_lines(plan, record))
    if 'runtime' not in record.cost:
        log.begin(Step.LATENCY)
        cost = record.cost | measure_latency(plan)
        record = plan.files.publish(record, keep_report=True, cost=cost)
        _report(plan, log, opened)
    log.print(*screen.time_lines(plan, record.cost))
    return record


class FittedModel:
    """Model written by :func:`mmclca.fitting.fit`.

    Args:
        folder (str | Path): Folder of the model.
        device (str, optional): Device. Defaults to None: a GPU if available.

    Attributes:
        folder (Path): Folder of the model.
        facts (dict): Content of fit.json.
        classes (list[str]): Class names.
        accuracy (float | None): Accuracy on new photos, 0 to 1. None if
            there are too few photos to measure it.

    Raises:
        FileNotFoundError: If the folder holds no model.
        Error: If fit.json is damaged.

    Example:
        >>> from mmclca import fit
        >>> model = fit('photos/', 'model/')
        >>> model.predict('new/')[0]['pred_class']
    """

    def __init__(self, folder: str | PathLike, device: str | None = None):
        ModelFolder.open(folder)
        self.folder, self._device = Path(folder), device
        self._read()

    def _read(self) -> None:
        files = FitFolder(self.folder)
        record = files.read()
        self.facts, self.classes = vars(record), record.classes
        with files.blame_facts():
            self.accuracy = record.best['accuracy']
        vars(self).pop('_inferencer', None)

    @cached_property
    def _inferencer(self) -> TokenReductionInferencer:
        return TokenReductionInferencer(self.folder, device=self._device)

    def predict(self, photos, batch_size: int = 32) -> list[dict]:
        """Classify photos.

        Args:
            photos (str | Path | np.ndarray | Sequence): Files, folders,
                patterns or arrays, see :class:`TokenReductionInferencer`.
            batch_size (int): Photos per batch. Defaults to 32.

        Returns:
            list[dict]: One entry per photo: ``image`` (path), ``pred_class``
            (predicted class), ``pred_score`` (its probability), ``known``
            (False if flagged as unknown) and ``known_score`` (the compared
            score). Without a threshold, the last two are None. An unreadable
            photo has ``image`` and ``error`` (the reason).
        """
        found = self._inferencer.stream(photos, batch_size)
        names = ('image', *PREDICTION, 'error')
        return [{x: row[x] for x in names if x in row} for row in found]

    def add_class(
        self,
        photos: str | PathLike,
        name: str | None = None,
        force: bool = False,
    ) -> None:
        """Add a class, or more photos of an existing class.

        The classifier is refitted to all photos; the backbone does not
        change. Previous photos may be missing: their features are stored in
        the folder of the model.

        Args:
            photos (str | Path): Folder of photos of one class.
            name (str, optional): Class name. Defaults to None: the name of
                the folder.
            force (bool): Whether to change the model although the name
                resembles another class, or the accuracy falls below its
                interval. Defaults to False.

        Raises:
            ConfirmationError: If a change needs ``force``. The model does not
                change.
            FileNotFoundError: If the folder does not exist.
            Error: If it is empty or has photos of another class. The
                model does not change.
        """
        files = FitFolder(self.folder)
        place = Path(os.path.abspath(os.path.expanduser(photos)))
        if name is None:
            _check_one_class(place)
        with find_log() as log, files.locked():
            had, name = files.read(), name or place.name
            if not force:
                check_name(name, had.classes)
            learned = files.read_used_photos()
            if not all(photo.sha256 for photo in learned):
                raise Error(
                    f'{files.table}: no digest for some photos; restore the '
                    'file, or fit again'
                )
            joined = _joined(learned, had, place, name)
            known = {photo.path: photo.sha256 for photo in learned}
            # an interrupted call may have learned these photos
            again = dict(_digests(place).items() & known.items())
            checked = check_photos(joined, unopened=known)
            record = had.of_photos(checked)
            _check_learned(had, record, name)
            if record.counts != had.counts:
                training = had.training and dict(
                    had.training, finetune_val=None
                )
                fresh = dict(probe=None, test=None)
                record = replace(record, training=training, **fresh)
            else:
                known = f'no new photos: the model has all photos of {name}'
                log.print(screen.row('Warning', known))
            files.discard_draft()
            exports = files.exports()
            plan = make_plan(files, record, checked, self._device)
            check = None if force else partial(check_accuracy, had)
            try:
                record = do_steps(plan, record, log, opened=again, check=check)
            except ConfirmationError:
                files.discard_draft()
                raise
            log.print(*screen.class_lines(had, record, name))
            log.print(*screen.saved_lines(files.path, exports, log.is_console))
            if 'runtime' not in record.cost:  # the fit was interrupted
                describe_model(plan, record, log, again)
        self._read()


def _joined(
    learned: list[PhotoRow], record: FitRecord, place: Path, name: str
) -> LabeledImages:
    """Join the photos of a model with a folder for one class."""
    advice = 'give a folder of photos of one class'
    if place.is_file():
        raise Error(f'{place} is a file; {advice}')
    if not place.is_dir():
        raise FileNotFoundError(f'folder {place} does not exist; {advice}')
    digests = _digests(place)
    if not digests:
        raise Error(f'{place} has no photos; {advice}')
    _check_class(learned, digests, place, name)
    known = [photo.path for photo in learned]
    seen = {photo.sha256 for photo in learned}
    new = [x for x in digests if x not in known and digests[x] not in seen]
    names = [photo.label for photo in learned] + [name] * len(new)
    groups = None
    if learned[0].group:  # each new one is another
        groups = [photo.group for photo in learned] + new
    paths, source = known + new, record.source
    joined = LabeledImages.from_names(paths, names, source, record.classes)
    return replace(joined, groups=groups, splits=['train'] * len(names))


def _digests(place: Path) -> dict[str, str]:
    """Return the SHA-256 of the photos in a folder."""
    return {path: digest_of_file(path) for path in find_images([place])}


def _check_class(
    learned: list[PhotoRow], digests: dict[str, str], place: Path, name: str
) -> None:
    """Refuse photos learned as another class."""
    classes = {photo.sha256: photo.label for photo in learned}
    others = [classes.get(digest, name) for digest in digests.values()]
    others = [x for x in others if x != name]
    if others:
        raise Error(
            f'{place}: {len(others)} of {len(digests)} photos are already '
            f'in the model as {join_first(sorted({*others}), 3)}; remove '
            'them, or move them to the other class and fit again'
        )


def _check_one_class(place: Path) -> None:
    """Refuse a folder of class folders."""
    found = [Path(x).relative_to(place) for x in find_images([place])]
    folders = sorted({path.parts[0] for path in found if path.parent.parts})
    if len(folders) > 1 and all(path.parent.parts for path in found):
        raise Error(
            f'{place} has {len(folders)} folders of photos, expected one '
            f'class; give one folder, such as {place / folders[0]}, or '
            '--name CLASS if all photos show one class'
        )


def _check_learned(had: FitRecord, record: FitRecord, name: str) -> None:
    """Refuse additions without new photos or with a lost class."""
    lost = [x for x in had.classes if x not in record.classes]
    if lost or name not in record.classes:
        what = f'would remove {", ".join(lost)}' if lost else 'no new photos'
        problems = '; '.join(x.describe() for x in record.problems)
        why = problems or 'photographs.csv has other classes'
        raise Error(f'class {name} not added: {what} ({why})')
