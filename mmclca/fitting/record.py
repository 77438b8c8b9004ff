# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Record of a fitted model (fit.json) and its folder."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from os import PathLike
from pathlib import Path

from jinja2 import TemplateError

from mmclca.checkpoints import checksums
from mmclca.checkpoints.identity import digest
from mmclca.checkpoints.model_folder import (
    FILES,
    MODEL,
    WEB,
    ModelFolder,
    damaged_file_errors,
    prepare_writing,
)
from mmclca.datasets.photos import PhotoCheck, Problem
from mmclca.errors import Error
from mmclca.utils.files import remove_partial_files, replace_text
from mmclca.utils.folders import WHOLE, locked, remove_folder, replace_files
from mmclca.utils.provenance import versions
from mmclca.version import __version__

# raised if facts have a wrong type
_WRONG = (
    *(ArithmeticError, AttributeError, LookupError, TemplateError),
    *(TypeError, ValueError),
)
UNEVEN = 10  # ratio of the largest to the smallest class
# folder names that say nothing about the photos
GENERIC = {'model', 'photos', 'images', 'data', ''}


@dataclass(frozen=True)
class FitRecord:
    """Facts about a fitted model, in the order of fit.json.

    Each step adds facts; until then, these are None.
    """

    version: str | None = None
    name: str | None = None
    call: dict | None = None
    photos: str | None = None
    table: int | None = None
    source: str | None = None
    classes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    weights: dict | None = None
    model: dict | None = None
    considered: list[dict] = field(default_factory=list)
    cost: dict | None = None
    probe: dict | None = None
    near_duplicate_counts: dict[str, int] | None = None
    near_duplicates: list[tuple[str, str]] | None = None
    threshold: dict | None = None
    learning_curve: list[dict] = field(default_factory=list)
    training: dict | None = None
    test: dict | None = None
    final: str | None = None
    versions: dict = field(default_factory=dict)
    date: str | None = None
    seconds: float = 0

    @classmethod
    def of_call(cls, call: dict, checked: PhotoCheck) -> 'FitRecord':
        """Create the record of a call, before the first step."""
        date = datetime.now(timezone.utc).isoformat(timespec='seconds')
        new = cls(__version__, call=call, versions=versions(), date=date)
        return new.of_photos(checked)

    def of_photos(self, checked: PhotoCheck) -> 'FitRecord':
        """Replace the facts about photos."""
        found = checked.photos
        rows = [found.paths, found.labels, found.classes]
        rows += [found.groups, found.splits]
        return replace(
            self,
            photos=digest(rows),
            source=found.source,
            classes=list(found.classes),
            counts=found.select(found.to_train()).counts(),
            problems=checked.list_problems(),
        )

    @property
    def best(self) -> dict:
        """Most reliable measurement: ``accuracy``, ``low`` and ``high``.

        On photos in val and test folders, else on the hold-out set of a
        fine-tuned model, else cross-validated for the probe.
        """
        finetune_val = self.training and self.training['finetune_val']
        trained = self.final == 'trained' and finetune_val
        return self.test or trained or self.probe

    @property
    def is_measured(self) -> bool:
        """Whether ``best`` is a measurement of the saved model.

        False for a fine-tuned model with too few photos to measure it: its
        accuracy is that of the linear probe.
        """
        return self.final != 'trained' or self.best is not self.probe

    @property
    def is_grouped(self) -> bool:
        """Whether the user named groups, so that new ones are tested."""
        return bool(self.call and self.call['groups'])

    @property
    def is_uneven(self) -> bool:
        """Whether class sizes differ by the factor ``UNEVEN`` or more."""
        counts = [n for n in self.counts.values() if n]
        return max(counts) >= UNEVEN * min(counts)


class FitFolder(ModelFolder):
    """Folder of a fitted model that ``fit`` writes; it need not exist.

    New files are written to a draft folder and replace the previous ones in
    one step.
    """

    def __init__(self, path: str | PathLike):
        super().__init__(path)
        self.log = self.path / 'log.txt'
        self.features = self.path / 'features'
        self.training = self.path / 'training'
        self.hold_out = self.training / 'hold_out'
        self.final_training = self.training / 'all'

    def name_model(self, record: FitRecord) -> str:
        """Return the given name of a model, or derive one.

        It is the first name that is not generic, such as 'model', among its
        folder, its photos and the folder around it. The home folder does not
        count: its name may be that of a person.
        """
        if record.name:
            return record.name
        folder = self.path.resolve()
        names = [folder.name, Path(record.source or '').stem]
        if folder.parent != Path.home():
            names.append(folder.parent.name)
        return next((x for x in names if x not in GENERIC), folder.name)

    @cached_property
    def draft(self) -> 'FitFolder':
        """Folder with unfinished files."""
        return FitFolder(self.path / '.draft')

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder, and complete interrupted replacements of files.

        Raise an ``Error`` if another process writes into the folder, or
        it has links.
        """
        with locked(self.path, 'fit or add-class'):
            prepare_writing(self.path)
            yield

    def read(self) -> FitRecord:
        """Read fit.json, or raise if it is missing or damaged."""
        facts = self.read_record()
        with damaged_file_errors(self.file, LookupError, TypeError):
            facts['problems'] = [
                Problem(
                    problem['kind'],
                    tuple(map(tuple, problem.get('cases', ()))),
                    problem.get('reason', ''),
                )
                for problem in facts.get('problems', ())
            ]
            return FitRecord(**facts)

    def blame_facts(self):
        """Report errors from code using the facts as a damaged fit.json."""
        return damaged_file_errors(self.file, *_WRONG)

    def write(self, record: FitRecord) -> None:
        """Replace fit.json."""
        facts = checksums.add_checksum(asdict(record))
        text = json.dumps(facts, indent=1, ensure_ascii=False)
        replace_text(self.file, f'{text}\n')

    def known(self, record: FitRecord) -> FitRecord | None:
        """Read the record of an equal earlier call, if possible of the draft.

        Return None in a new folder. Raise an ``Error`` if the folder
        belongs to another call or has other files.
        """
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
            raise Error(
                f'{self.path} was fitted with {"; ".join(other)}; choose '
                'another --out, or add --overwrite to replace the model'
            )
        return had

    def check_available(self) -> None:
        """Raise an ``Error`` for a file, or a folder with other files."""
        if self.path.is_file():
            raise Error(f'{self.path} is a file; choose a folder with --out')
        if self.file.is_file() or (self.path / WHOLE / MODEL).is_file():
            return
        ours = {self.features, self.path / '.lock'}
        if self.draft.path.is_dir():  # an interrupted fit
            ours |= {self.draft.path, self.log}
        if self.path.exists() and {*self.path.iterdir()} - ours:
            raise Error(
                f'{self.path} already exists and is not empty; choose another '
                '--out, or add --overwrite'
            )

    def exports(self) -> list[Path]:
        """List the exported models in the folder."""
        names = 'model*.onnx', 'model*.pt2', f'{WEB}/model.onnx'
        found = (self.path.glob(name) for name in names)
        return sorted(file for files in found for file in files)

    def begin(self, record: FitRecord) -> None:
        """Write a draft fit.json, which marks the folder as created by fit.

        Remove partial files of killed processes.
        """
        for place, *_ in os.walk(self.features):
            remove_partial_files(Path(place))
        for folder in (self.path, self.draft.path):
            remove_partial_files(folder)
        self.draft.write(record)

    def add(self, record: FitRecord, **parts) -> FitRecord:
        """Add facts to a record, and write it as a draft."""
        record = replace(record, **parts)
        self.draft.write(record)
        return record

    def publish(
        self, record: FitRecord, keep_report: bool = False, **parts
    ) -> FitRecord:
        """Add facts as :meth:`add`, and replace the model by the draft.

        If the draft has a new model, outdated exports are removed. The
        report is removed until a new one is written, unless ``keep_report``.
        """
        record = self.add(record, **parts)
        for file in self.exports() if self.draft.model.is_file() else ():
            file.unlink()
        if not keep_report:
            self.draft.report.touch()
        replace_files(self.path, self.draft.path, FILES)
        return record

    def discard_draft(self) -> None:
        """Remove the draft, beginning with its mark fit.json."""
        if self.draft.path.is_dir():
            self.draft.file.unlink(missing_ok=True)
            remove_folder(self.draft.path)

    def clear(self) -> None:
        """Remove draft, log and training checkpoints, but not the model."""
        self.discard_draft()
        if self.file.is_file():  # else these files belong to the user
            self.log.unlink(missing_ok=True)
            self.remove_training()

    def remove_training(self) -> None:
        """Remove training checkpoints, but no files of the user."""
        for folder in (self.hold_out, self.final_training):
            remove_folder(folder)
        with suppress(OSError):  # missing, or not empty
            self.training.rmdir()


def _differences(had: FitRecord, record: FitRecord) -> list[str]:
    """List the changed settings since the earlier run."""
    other = [
        f'{name} {had.call.get(name)!r} (now {value!r})'
        for name, value in record.call.items()
        if had.call.get(name) != value
    ]
    if not other and had.photos != record.photos:
        numbers = (sum(x.counts.values()) for x in (had, record))
        other = ['{} photos (now {}, or different ones)'.format(*numbers)]
    return other
