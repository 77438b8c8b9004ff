# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Model folder of ``fit``: draft, lock, resuming."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path

from mmclca.checkpoints import checksums
from mmclca.checkpoints.gate.folders import (
    WHOLE,
    locked,
    remove_folder,
    replace_files,
)
from mmclca.checkpoints.model_folder import (
    FILES,
    MODEL,
    PREVIOUS,
    RECORD,
    ModelFolder,
    damaged_file_errors,
    prepare_writing,
)
from mmclca.errors import Error
from mmclca.export_formats import FORMATS
from mmclca.utils.files import remove_partial_files, replace_text

from .record import FitRecord

# folder names without a meaning
GENERIC_NAMES = {'model', 'photos', 'images', 'data', ''}


class FitFolder(ModelFolder):
    """Folder of a fitted model; it need not exist.

    New files are written to a draft folder and replace the previous ones in
    one step.
    """

    def __init__(self, path: str | PathLike):
        super().__init__(path)
        self.log = self.path / 'log.txt'
        self.features = self.path / 'features'
        self.training_folder = self.path / 'training'
        self.hold_out = self.training_folder / 'hold_out'
        self.final_training = self.training_folder / 'all'

    def name_model(self, record: FitRecord) -> str:
        """Return the given name of a model, or derive one.

        It is the first name that is not generic, such as 'model', among its
        folder, its photos and the folder around it. The home folder does not
        count: its name may be that of a person.
        """
        if record.name:
            return record.name
        folder = self.path.resolve()
        names = [folder.name, Path(record.photos.source).stem]
        if folder.parent != Path.home():
            names.append(folder.parent.name)
        return next((x for x in names if x not in GENERIC_NAMES), folder.name)

    @cached_property
    def draft(self) -> 'FitFolder':
        """Folder with unfinished files."""
        return FitFolder(self.path / '.draft')

    @cached_property
    def previous(self) -> 'FitFolder':
        """Folder with the model before the last change; it need not exist."""
        return FitFolder(self.path / PREVIOUS)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder, and complete interrupted file replacements.

        Raise an ``Error`` if another process writes into the folder, or
        it has links.
        """
        with locked(self.path, 'fit or add-class'):
            prepare_writing(self.path)
            yield

    def read(self) -> FitRecord:
        """Read fit.json.

        Raises:
            FileNotFoundError: If it is missing.
            Error: If it is damaged.
        """
        content = self.read_record()
        with damaged_file_errors(self.file, Error):
            return FitRecord.from_json(content)

    def read_complete(self) -> FitRecord:
        """Read a model's fit.json, which has all figures of the report.

        Raises:
            FileNotFoundError: If it is missing.
            Error: If it is damaged or incomplete.
        """
        record = self.read()
        with damaged_file_errors(self.file, Error):
            record.check_complete()
        return record

    def write(self, record: FitRecord) -> None:
        """Replace fit.json."""
        content = checksums.add_checksum(record.to_json())
        json_text = json.dumps(content, indent=1, ensure_ascii=False)
        replace_text(self.file, f'{json_text}\n')

    def find_record(self, record: FitRecord) -> FitRecord | None:
        """Read the record of an equal earlier call, if possible of the draft.

        Return None in a new folder. Raise an ``Error`` if the folder
        belongs to another call or has other files.
        """
        if self.draft.file.is_file():
            previous = self.draft.read()
            if not previous.list_differences(record):
                return previous
        if not self.file.is_file():
            self.check_available()
            if self.draft.path.is_dir():
                self.log.unlink(missing_ok=True)
        self.discard_draft()
        if not self.file.is_file():
            return None
        previous = self.read()
        differences = previous.list_differences(record)
        if differences:
            raise Error(
                f'{self.path} was fitted with {"; ".join(differences)}; '
                'choose another `out`, or set `overwrite=True` to replace it'
            )
        return previous

    def check_available(self) -> None:
        """Raise an ``Error`` for a file, or a folder with other files."""
        if self.path.is_file():
            raise Error(f'{self.path} is a file; choose another `out`')
        if self.file.is_file() or (self.path / WHOLE / MODEL).is_file():
            return
        ours = {self.features, self.path / '.lock'}
        if self.draft.path.is_dir():  # an interrupted fit
            ours |= {self.draft.path, self.log}
        if self.path.exists() and {*self.path.iterdir()} - ours:
            raise Error(
                f'{self.path} already exists and is not empty; choose another '
                '`out`, or set `overwrite=True`'
            )

    def list_exports(self) -> list[Path]:
        """List the exported models in the folder."""
        stem = self.model.stem
        patterns = [
            pattern.replace('*', f'{stem}*')
            for export_format in FORMATS.values()
            for pattern in export_format.list_patterns()
        ]
        return sorted(
            {path for pattern in patterns for path in self.path.glob(pattern)}
        )

    def begin(self, record: FitRecord) -> None:
        """Write a draft fit.json, which marks the folder as created by fit.

        Remove partial files of killed processes.
        """
        for feature_folder, *_ in os.walk(self.features):
            remove_partial_files(Path(feature_folder))
        for folder in (self.path, self.draft.path):
            remove_partial_files(folder)
        self.draft.write(record)

    def add(self, record: FitRecord, **parts) -> FitRecord:
        """Replace parts of a record, and write it as a draft."""
        record = replace(record, **parts)
        self.draft.write(record)
        return record

    def publish(
        self, record: FitRecord, keep_report: bool = False, **parts
    ) -> FitRecord:
        """Replace parts as :meth:`add`, and replace the model by the draft.

        If the draft has a new model, outdated exports are removed. The
        report is removed until a new one is written, unless ``keep_report``.
        """
        record = self.add(record, **parts)
        for file in self.list_exports() if self.draft.model.is_file() else ():
            file.unlink()
        if not keep_report:
            self.draft.report.touch()
        replace_files(self.path, self.draft.path, FILES)
        return record

    def keep_previous(self) -> None:
        """Copy the model to the folder of the previous one, in one step."""
        self.previous.path.mkdir(exist_ok=True)
        self.previous._stage(self)
        replace_files(self.previous.path, self.previous.draft.path, FILES)

    def exchange_previous(self) -> None:
        """Exchange the model with the previous one; remove exports.

        If this is killed, the folder has one of both models, complete.
        """
        self.previous._stage(self)
        self._stage(self.previous)
        for file in self.list_exports():
            file.unlink()
        replace_files(self.path, self.draft.path, FILES)
        replace_files(self.previous.path, self.previous.draft.path, FILES)

    def _stage(self, source: 'FitFolder') -> None:
        """Copy a model to the draft; an absent file will be removed."""
        self.discard_draft()
        self.draft.path.mkdir()
        # last, because fit.json marks a draft to resume from
        for name in sorted(FILES, key=lambda name: name == RECORD):
            target = self.draft.path / name
            if (source.path / name).is_file():
                shutil.copyfile(source.path / name, target)
            else:
                target.touch()

    def discard_draft(self) -> None:
        """Remove the draft, beginning with its mark fit.json."""
        if self.draft.path.is_dir():
            self.draft.file.unlink(missing_ok=True)
            remove_folder(self.draft.path)

    def clear(self) -> None:
        """Remove draft, log and training checkpoints, but not the model.

        The previous model is removed, too: the new one will not follow it.
        """
        self.discard_draft()
        if self.file.is_file():  # else these files belong to the user
            self.log.unlink(missing_ok=True)
            self.remove_training()
            self.discard_previous()

    def discard_previous(self) -> None:
        """Remove the previous model, but no files from the user."""
        previous = self.previous
        previous.discard_draft()
        for name in FILES:
            (previous.path / name).unlink(missing_ok=True)
        with suppress(OSError):  # missing, or not empty
            previous.path.rmdir()

    def remove_training(self) -> None:
        """Remove training checkpoints, but no files from the user."""
        for folder in (self.hold_out, self.final_training):
            remove_folder(folder)
        with suppress(OSError):  # missing, or not empty
            self.training_folder.rmdir()
