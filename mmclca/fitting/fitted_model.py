# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From photographs to a model: the steps of a fit, in their order."""

import os
import time
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path

from mmclca.apis import Probe, TokenReductionInferencer, find_images
from mmclca.apis.inferencer import ANSWER
from mmclca.apis.probe.probe import digest_of_file
from mmclca.benchmark.timing import RUNTIMES, find_runtime
from mmclca.checkpoints.fitted import model_file
from mmclca.datasets.levels import read_level
from mmclca.datasets.photographs import (
    Checked,
    Photographs,
    check_photographs,
    read_photographs,
)
from mmclca.utils.messages import first_of, integer, one_of

from .model import Plan, cost_of, make_plan, parse_budget, time_of
from .probing import coarse_line, measure, run_probe, series_of
from .record import FitRecord, ModelFolder
from .report import write_report
from .screen import (
    Log,
    class_lines,
    cost_line,
    end_lines,
    explain_lines,
    probe_lines,
    series_lines,
    start_lines,
    time_line,
)
from .training import improve


def fit(
    photographs: str | PathLike,
    out: str | PathLike = 'model',
    budget: str | None = None,
    runtime: str | None = None,
    weights: str | None = None,
    labels: str | PathLike | None = None,
    groups: str | None = None,
    folds: int = 5,
    probe_only: bool = False,
    explain: bool = False,
    class_weights: str | None = None,
    overwrite: bool = False,
    pixels: str | None = None,
    device: str | None = None,
    coarse: str | PathLike | None = None,
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
            '0.5GMACs' or '20ms' on this machine; 'best' for the one to
            prefer whatever it costs. Defaults to None: half of what
            the whole transformer costs.
        runtime (str, optional): 'onnx' or 'pytorch', what times are measured
            in. Defaults to None: ONNX Runtime where it is installed, on a
            GPU PyTorch.
        weights (str, optional): A file, or ``timm://NAME``. Defaults to
            None: DeiT-Tiny's of timm.
        labels (str | Path, optional): A table of file and class.
            Defaults to None: folders name the classes.
        groups (str, optional): What photographs of one thing have in common:
            a regular expression, or a column of the table. Defaults to None.
        folds (int): Parts of the estimate. Defaults to 5.
        probe_only (bool): Whether to leave the network as it came.
            Defaults to False.
        explain (bool): Whether to say why the model was chosen, and what the
            first candidate would give. Defaults to False.
        class_weights (str, optional): 'balanced' for classes that count
            alike. Defaults to None: photographs count alike.
        overwrite (bool): Whether to replace what another call has written.
            Defaults to False.
        pixels (str, optional): 'imagenet' or 'half', how the pixels that the
            weights know were normalized. Defaults to None: as timm says.
        device (str, optional): Where it runs. Defaults to None: on a GPU if
            there is one.
        coarse (str | Path, optional): A table of classes and the coarser
            ones that they belong to, such as cultivars and species, to say
            how well both are found. Defaults to None.

    Returns:
        FittedModel: What the folder holds, ready to predict.

    Raises:
        FileNotFoundError: If photographs, table or weights are not there.
        ValueError: If they are of no use, ``out`` is of another call, or no
            model is within the budget; says what to do.
    """
    integer(2, folds=folds)
    if runtime is not None:
        one_of(RUNTIMES, runtime=runtime)
        find_runtime(runtime, 'cpu')
    if budget is not None:
        parse_budget(budget)
    coarse_of = coarse and read_level(coarse)
    call = dict(
        photographs=os.path.abspath(photographs),
        budget=budget,
        runtime=runtime,
        weights=weights and str(weights),
        labels=labels and os.path.abspath(labels),
        groups=groups,
        folds=folds,
        class_weights=class_weights,
        pixels=pixels,
    )
    files = ModelFolder(out)
    with Log() as log:
        found = read_photographs(call['photographs'], call['labels'], groups)
        checked = check_photographs(found)
        if not overwrite:
            files.check_available()
        with files.locked():
            record = FitRecord.of_call(call, checked)
            record = (not overwrite and files.known(record)) or record
            given = device, log, overwrite, probe_only
            plan, record = do_steps(files, record, checked, *given)
        if coarse:
            log.tell_user(coarse_line(plan, coarse_of))
        if explain:
            log.tell_user(*explain_lines(plan, record))
    return FittedModel(out, device)


def do_steps(
    files: ModelFolder,
    record: FitRecord,
    checked: Checked,
    device: str | None,
    log: Log,
    overwrite: bool = False,
    probe_only: bool = True,
) -> tuple[Plan, FitRecord]:
    """Do the steps of a fit that the record does not have yet.

    Each returns its part of the record, which is written at once; before the
    model is chosen nothing is.
    """
    plan = make_plan(files, record, checked, device)
    if not checked.unopened:
        record = replace(record, **plan.facts())
    if overwrite:
        files.clear()
    files.begin(record)
    exports = files.exports()
    log.open(files.log)
    began, before = time.perf_counter(), record.seconds
    log.tell_user(*start_lines(plan, record))
    if record.cost is None:
        record = files.add(record, cost=cost_of(plan))
    log.tell_user(cost_line(plan, record.cost))
    if record.probe is None:
        is_trained = record.final == 'trained'
        record = files.add(record, **run_probe(plan, is_trained))
    log.tell_user(*probe_lines(record))
    # what training writes is no part of this draft
    record = files.publish(record, final=record.final or 'probe')
    if record.series is None or checked.unopened:
        found = series_of(plan, record.series)
        record = files.publish(record, series=found)
    log.tell_user(*series_lines(record))
    if 'runtime' not in record.cost:
        record = files.publish(record, cost=record.cost | time_of(plan))
    log.tell_user(time_line(plan, record.cost))
    if not probe_only and record.training is None:
        record = files.publish(record, **improve(plan, record, log))
    held_out = checked.photographs.without({*plan.training.paths})
    if len(held_out) and record.held_out is None:
        found, _ = measure(Probe(files.model, None, plan.device), held_out)
        record = files.add(record, held_out=found)
    seconds = before + time.perf_counter() - began
    record = files.publish(record, seconds=seconds)
    write_report(files.path, checked.digests.keys() - checked.unopened)
    if record.training:  # it needs thrice the space of the model
        files.remove_training()
    gone = [file.name for file in exports if not file.exists()]
    log.tell_user(*end_lines(record, files.path, gone))
    return plan, record


class FittedModel:
    """A model that :func:`mmclca.fitting.fit` wrote.

    Args:
        folder (str | Path): Its folder.
        device (str, optional): Where it runs. Defaults to None: on a GPU if
            there is one.

    Attributes:
        folder (Path): Where its files are.
        facts (dict): The content of fit.json.
        classes (list[str]): Names of its classes.
        accuracy (float | None): Share of photographs it has not seen that it
            names right, 0 to 1. None where there are too few photographs to
            measure it.

    Raises:
        FileNotFoundError: If there is no such model.
        ValueError: If its fit.json is damaged.

    Example:
        >>> from mmclca import fit
        >>> model = fit('photographs/', 'model/')
        >>> model.predict('new/')[0]['pred_class']
    """

    def __init__(self, folder: str | PathLike, device: str | None = None):
        model_file(folder)
        self.folder, self._device = Path(folder), device
        self._read()

    def _read(self) -> None:
        files = ModelFolder(self.folder)
        record = files.read()
        self.facts, self.classes = vars(record), record.classes
        with files.blamed():
            self.accuracy = record.best['accuracy']
        vars(self).pop('_inferencer', None)

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
        as it is. Known photographs need not be there any more: their features
        are in the folder of the model.

        Args:
            photographs (str | Path): A folder of photographs of one class.
            name (str, optional): Its name. Defaults to None, that of the
                folder.

        Raises:
            FileNotFoundError: If there is no such folder.
            ValueError: If it has no photographs, or photographs of another
                class. The model stays as it was.
        """
        files, place = ModelFolder(self.folder), Path(photographs).expanduser()
        place = Path(os.path.abspath(place))
        if name is None:
            _check_one_class(place)
        with Log() as log, files.locked():
            had, name = files.read(), name or place.name
            rows = files.used_rows()
            if not all(row['digest'] for row in rows):
                raise ValueError(
                    f'{files.table} is of an earlier version, without '
                    'digests: fit again with --overwrite'
                )
            joined = _joined(rows, had, place, name)
            known = {row['path']: row['digest'] for row in rows}
            checked = check_photographs(joined, unopened=known)
            record = had.of_photographs(checked)
            _check_learned(had, record, name)
            if record.counts != had.counts:
                training = had.training and dict(had.training, holdout=None)
                fresh = dict(probe=None, held_out=None)
                record = replace(record, training=training, **fresh)
            else:
                known = f'The model knows all photographs of {name} already'
                log.tell_user(known)
            files.discard_draft()
            given = files, record, checked, self._device, log
            _, record = do_steps(*given)
            log.tell_user(*class_lines(had, record, name))
        self._read()


def _joined(
    rows: list[dict], record: FitRecord, place: Path, name: str
) -> Photographs:
    """Join what a model was fitted to and a folder of a class, maybe new."""
    advice = 'give a folder of photographs of one class'
    if not place.is_dir():
        raise FileNotFoundError(f'there is no folder {place}: {advice}')
    found = find_images([place])
    if not found:
        raise ValueError(f'{place} has no photographs: {advice}')
    digests = {path: digest_of_file(path) for path in found}
    _check_class(rows, digests, place, name)
    known = [row['path'] for row in rows]
    seen = {row['digest'] for row in rows}
    new = [x for x in found if x not in known and digests[x] not in seen]
    names = [row['class'] for row in rows] + [name] * len(new)
    groups = None
    if rows[0]['group']:  # each new one is another
        groups = [row['group'] for row in rows] + new
    paths, source = known + new, record.source
    joined = Photographs.named(paths, names, source, record.classes)
    return replace(joined, groups=groups, splits=['train'] * len(names))


def _check_class(
    rows: list[dict], digests: dict[str, str], place: Path, name: str
) -> None:
    """Refuse photos that the model knows as photos of another class."""
    classes = {row['digest']: row['class'] for row in rows}
    others = [classes.get(digest, name) for digest in digests.values()]
    others = [x for x in others if x != name]
    if others:
        raise ValueError(
            f'{len(others)} of {len(digests)} photos in {place} are already '
            f'photos of {first_of(sorted({*others}), 3)}, and a photo has one '
            'class: leave them out, or move them to the folder of the other '
            'class and fit again'
        )


def _check_one_class(place: Path) -> None:
    """Refuse a folder of class folders."""
    found = [Path(x).relative_to(place) for x in find_images([place])]
    folders = sorted({path.parts[0] for path in found if path.parent.parts})
    if len(folders) > 1 and all(path.parent.parts for path in found):
        raise ValueError(
            f'{place} has {len(folders)} folders of photographs: give the '
            f'folder of ONE class, such as {place / folders[0]}; or '
            '--name CLASS if all of it is one class'
        )


def _check_learned(had: FitRecord, record: FitRecord, name: str) -> None:
    """Refuse photographs that teach nothing, or by which a class is lost."""
    lost = [x for x in had.classes if x not in record.classes]
    if lost or name not in record.classes:
        what = f'{", ".join(lost)} would be lost' if lost else 'nothing is new'
        why = '; '.join(record.problems) or 'photographs.csv has other classes'
        raise ValueError(f'{what}: {why}')
