# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The record of a fitted model, and the folder that it lies in."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from os import PathLike
from pathlib import Path

from filelock import FileLock, Timeout
from jinja2 import TemplateError

from mmclca.checkpoints.fitted import FILES, MODEL, THRESHOLD, prepare_writing
from mmclca.checkpoints.identity import digest
from mmclca.datasets.photographs import Checked
from mmclca.utils.files import remove_partial_files, replace_text, rows_of
from mmclca.utils.folders import (
    WHOLE,
    read_file,
    refuse_links,
    remove_folder,
    replace_files,
)
from mmclca.utils.provenance import versions
from mmclca.version import __version__

# of code that reads facts of the wrong type
_WRONG = ArithmeticError, AttributeError, LookupError, TemplateError, TypeError
# of a file; earlier versions wrote none
_DIGEST = re.compile('([0-9a-f]{64})?')
UNEVEN = 10  # times as many photographs in the largest class


@dataclass(frozen=True)
class FitRecord:
    """Hold what is known of a model, in the order of fit.json.

    Each step of a fit returns its part of it. What is not known yet is None.
    """

    version: str | None = None
    call: dict | None = None
    photographs: str | None = None
    source: str | None = None
    classes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    weights: dict | None = None
    model: dict | None = None
    cost: dict | None = None
    probe: dict | None = None
    series: dict[str, int] | None = None
    threshold: dict | None = None
    learning_curve: list[dict] = field(default_factory=list)
    training: dict | None = None
    held_out: dict | None = None
    final: str | None = None
    versions: dict = field(default_factory=dict)
    date: str | None = None
    seconds: float = 0

    @classmethod
    def of_call(cls, call: dict, checked: Checked) -> 'FitRecord':
        """Make the record before anything is fitted."""
        date = datetime.now(timezone.utc).isoformat(timespec='seconds')
        new = cls(__version__, call, versions=versions(), date=date)
        return new.of_photographs(checked)

    def of_photographs(self, checked: Checked) -> 'FitRecord':
        """Replace what the record holds of photographs."""
        found = checked.photographs
        rows = [found.paths, found.labels, found.classes]
        rows += [found.groups, found.splits]
        return replace(
            self,
            photographs=digest(rows),
            source=found.source,
            classes=list(found.classes),
            counts=found.select(found.to_train()).counts(),
            problems=checked.lines(),
        )

    @property
    def best(self) -> dict:
        """Find the measurement that says most about how good the model is.

        ``accuracy``, ``low`` and ``high`` of photographs in val and test
        folders, else of those that a trained model was measured on, else of
        the folds of the probe.
        """
        holdout = self.training and self.training['holdout']
        trained = self.final == 'trained' and holdout
        return self.held_out or trained or self.probe

    @property
    def is_uneven(self) -> bool:
        """Tell whether some classes are many times as large as others."""
        counts = [n for n in self.counts.values() if n]
        return max(counts) >= UNEVEN * min(counts)


class ModelFolder:
    """Find, read and replace the files of a fitted model.

    They are written as a draft, and take the place of those of before in one
    step. The folder need not exist.
    """

    def __init__(self, path: str | PathLike):
        self.path = Path(path)
        self.model = self.path / MODEL
        self.probe = self.path / 'probe.pth'
        self.threshold = self.path / THRESHOLD
        self.table = self.path / 'photographs.csv'
        self.evidence = self.path / 'evidence.safetensors'
        self.report = self.path / 'report.html'
        self.log = self.path / 'log.txt'
        self.features = self.path / 'features'
        self.pictures = self.path / 'pictures.safetensors'
        self.training = self.path / 'training'
        self.hold_out = self.training / 'hold_out'
        self.final_training = self.training / 'all'
        self.file = self.path / 'fit.json'

    @cached_property
    def draft(self) -> 'ModelFolder':
        """Hold the files that are being written."""
        return ModelFolder(self.path / '.draft')

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing into the folder.

        Within the context, interrupted replacements of files are complete.

        Raises:
            ValueError: If another process writes into the folder, or it holds
                links.
        """
        refuse_links(self.path, ['.lock'])
        self.path.mkdir(parents=True, exist_ok=True)
        lock = self.path / '.lock'
        try:
            with FileLock(lock, timeout=0):
                try:
                    prepare_writing(self.path)
                    yield
                finally:  # a call that was refused leaves nothing
                    with suppress(OSError):
                        lock.unlink()
                        self.path.rmdir()
        except Timeout:
            raise ValueError(
                f'{self.path} is in use by another fit or add-class; wait '
                'until it ends, or choose another folder'
            ) from None

    def read(self) -> FitRecord:
        """Read fit.json."""
        try:
            content = read_file(self.path, self.file.name)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(
                f'{self.path} is not a model folder: fit.json is missing; '
                f'run: python -m mmclca fit PHOTOS --out {self.path}'
            ) from None
        with _damage_of(self.file, ValueError, TypeError, RecursionError):
            record = FitRecord(**json.loads(content))
            # earlier versions knew no runtime
            call = record.call and dict(runtime=None) | record.call
            return replace(record, call=call)

    def blame_facts(self):
        """Blame fit.json for errors of code that only reads its facts."""
        return _damage_of(self.file, *_WRONG)

    def used_rows(self) -> list[dict]:
        """Read the rows of photographs.csv of those that were used.

        Raises:
            ValueError: If the table is damaged.
        """
        with _damage_of(self.table, TypeError, ValueError):
            content = read_file(self.path, self.table.name)
            rows = rows_of(content, 'path', 'class', 'used')
            rows = [row for row in rows if row['used'] == 'True']
            if not rows:
                raise ValueError('no used photos')
            for row in rows:
                match = _DIGEST.fullmatch(row.get('digest') or '')
                row['digest'] = match[0]
            return rows

    def write(self, record: FitRecord) -> None:
        """Replace fit.json."""
        text = json.dumps(vars(record), indent=1, ensure_ascii=False)
        replace_text(self.file, f'{text}\n')

    def known(self, record: FitRecord) -> FitRecord | None:
        """Read the record of an earlier, equal call; None without one."""
        if self.draft.file.is_file():
            had = self.draft.read()
            if not _differences(had, record):
                return had
        if not self.file.is_file():
            self.check_available()
            if self.draft.path.is_dir():
                self.log.unlink(missing_ok=True)
        self.discard_draft()
        if not self.file.is_file():
            return None
        had = self.read()
        other = _differences(had, record)
        if other:
            raise ValueError(
                f'{self.path} was fitted with {"; ".join(other)}; choose '
                'another --out, or add --overwrite to replace the model'
            )
        return had

    def check_available(self) -> None:
        """Refuse a folder that holds other files.

        Raises:
            ValueError: If it does, or is a file.
        """
        if self.path.is_file():
            raise ValueError(
                f'{self.path} is a file; choose a folder with --out'
            )
        if self.file.is_file() or (self.path / WHOLE / MODEL).is_file():
            return
        ours = {self.features, self.path / '.lock'}
        if self.draft.path.is_dir():  # of a fit that was interrupted
            ours |= {self.draft.path, self.log}
        if self.path.exists() and {*self.path.iterdir()} - ours:
            raise ValueError(
                f'{self.path} already exists and is not empty; choose another '
                '--out, or add --overwrite'
            )

    def exports(self) -> list[Path]:
        """List the files that the model was exported to."""
        found = (self.path.glob(f'model*{x}') for x in ('.onnx', '.pt2'))
        return sorted(file for files in found for file in files)

    def begin(self, record: FitRecord) -> None:
        """Write a draft fit.json, which marks the folder as created by fit.

        Partial files of killed processes are removed.
        """
        for place, *_ in os.walk(self.features):
            remove_partial_files(Path(place))
        for folder in (self.path, self.draft.path):
            remove_partial_files(folder)
        self.draft.write(record)

    def add(self, record: FitRecord, **parts) -> FitRecord:
        """Replace parts of a record, and write it as a draft."""
        record = replace(record, **parts)
        self.draft.write(record)
        return record

    def publish(self, record: FitRecord, **parts) -> FitRecord:
        """Do as :meth:`add`; the draft then takes the place of the model.

        What another model was exported to is removed.
        """
        record = self.add(record, **parts)
        for file in self.exports() if self.draft.model.is_file() else ():
            file.unlink()
        self.draft.report.touch()  # empty: it is outdated
        replace_files(self.path, self.draft.path, FILES)
        return record

    def discard_draft(self) -> None:
        """Remove the draft, fit.json first, by which it is known."""
        if self.draft.path.is_dir():
            self.draft.file.unlink(missing_ok=True)
            remove_folder(self.draft.path)

    def clear(self) -> None:
        """Remove what another fit has left but the model, and features."""
        self.discard_draft()
        if self.file.is_file():  # else a folder of that name is of others
            self.log.unlink(missing_ok=True)
            self.remove_training()

    def remove_training(self) -> None:
        """Remove checkpoints of finished trainings, but no files of others."""
        for folder in (self.hold_out, self.final_training):
            remove_folder(folder)
        with suppress(OSError):  # it is not there, or holds other files
            self.training.rmdir()


@contextmanager
def _damage_of(file: Path, *errors: type[Exception]) -> Iterator[None]:
    """Say of errors that a file is damaged.

    Raises:
        ValueError: If there are any.
    """
    try:
        yield
    except errors as error:
        raise ValueError(
            f'{file} is damaged ({type(error).__name__}: {error}); fit again '
            'with --overwrite'
        ) from error


def _differences(had: FitRecord, record: FitRecord) -> list[str]:
    """List the settings that differ from the earlier run."""
    other = [
        f'{name} {had.call.get(name)!r} (now {value!r})'
        for name, value in record.call.items()
        if had.call.get(name) != value
    ]
    if not other and had.photographs != record.photographs:
        numbers = (sum(x.counts.values()) for x in (had, record))
        other = ['{} photos (now {}, or different ones)'.format(*numbers)]
    return other
