# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The folder of a model that was fitted."""

import shutil
from functools import cached_property
from os import PathLike
from pathlib import Path

from mmclca.utils.atomic_write import (
    PARTIAL,
    finish_replacing,
    replace_files,
    replace_text,
)

from .record import FitRecord


class ModelFolder:
    """Where the files of a fitted model lie.

    They are written as a draft, and take the place of those of before in one
    step.

    Args:
        path (str | Path): The folder; it need not exist.
    """

    def __init__(self, path: str | PathLike):
        self.path = Path(path)
        self.model = self.path / 'model.pth'
        self.probe = self.path / 'probe.pth'
        self.threshold = self.path / 'threshold.json'
        self.table = self.path / 'photographs.csv'
        self.evidence = self.path / 'evidence.safetensors'
        self.report = self.path / 'report.html'
        self.log = self.path / 'log.txt'
        self.features = self.path / 'features'
        self.training = self.path / 'training'
        self.file = self.path / 'fit.json'
        finish_replacing(self.path)

    @cached_property
    def draft(self) -> 'ModelFolder':
        """The files that are being written."""
        return ModelFolder(self.path / '.draft')

    def publish(self) -> None:
        """Put the draft in the place of the model; the report is outdated."""
        self.draft.report.touch()
        replace_files(self.path, self.draft.path)

    def discard_draft(self) -> None:
        """Remove the draft, by its facts first, which make it one."""
        if self.draft.path.is_dir():
            self.draft.file.unlink(missing_ok=True)
            shutil.rmtree(self.draft.path)

    def remove_partial_files(self) -> None:
        """Remove what writers that were killed have left."""
        for partial in self.path.rglob(PARTIAL):
            partial.unlink()

    def read(self) -> FitRecord:
        """What fit.json holds."""
        if not self.file.is_file():
            raise FileNotFoundError(
                f'{self.path} is no folder of a fitted model, for it has no '
                'fit.json: python -m mmclca fit PHOTOGRAPHS --out '
                f'{self.path} makes one'
            )
        try:
            return FitRecord.of_text(self.file.read_text(encoding='utf-8'))
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(
                f'{self.file} is damaged ({error}): fit again with --overwrite'
            ) from error

    def read_finished(self) -> FitRecord:
        """As :meth:`read`, of a model that can be used."""
        begun = self.file.is_file() or self.draft.path.is_dir()
        if begun and not self.model.is_file():
            raise FileNotFoundError(
                f'{self.path} has no model.pth yet: the fit was interrupted; '
                'the same command goes on with it'
            )
        return self.read()

    def write(self, record: FitRecord) -> None:
        """Replace fit.json."""
        replace_text(self.file, record.text)

    def known(self, record: FitRecord) -> FitRecord | None:
        """What an earlier, equal call has found out; None: nothing yet."""
        begun = self.draft.file.is_file()
        if begun and not _differences(had := self.draft.read(), record):
            return had
        self.discard_draft()
        if not self.file.is_file():
            if not begun:
                self._check_empty()
            return None
        had = self.read()
        other = _differences(had, record)
        if other:
            raise ValueError(
                f'{self.path} was fitted with {"; ".join(other)}: give '
                'another folder with --out, or --overwrite to replace it '
                '(features of known photographs are kept)'
            )
        return had

    def _check_empty(self) -> None:
        if self.path.is_file():
            raise ValueError(
                f'{self.path} is a file: give a folder with --out'
            )
        ours = {self.features, self.draft.path}
        if self.path.exists() and {*self.path.iterdir()} - ours:
            raise ValueError(
                f'{self.path} is there and not empty: give another folder '
                'with --out, or --overwrite to write into it'
            )

    def clear(self) -> None:
        """Remove what another fit has left but the model, and features."""
        self.discard_draft()
        self.log.unlink(missing_ok=True)
        shutil.rmtree(self.training, ignore_errors=True)


def _differences(had: FitRecord, record: FitRecord) -> list[str]:
    """What is other than it was, in words."""
    other = [
        f'{name} {had.call.get(name)!r} (now {value!r})'
        for name, value in record.call.items()
        if had.call.get(name) != value
    ]
    if not other and had.photographs != record.photographs:
        numbers = (sum(x.counts.values()) for x in (had, record))
        other = ['{} photographs (now {}, or others)'.format(*numbers)]
    return other
