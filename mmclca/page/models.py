# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Photos and models on the disk: one folder per model."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from zipfile import ZipFile

from mmclca.apis import find_images
from mmclca.checkpoints.gate.folders import is_below, locked, remove_folder
from mmclca.checkpoints.model_folder import FILES
from mmclca.datasets.photos import Problem, check_photos, read_photos
from mmclca.datasets.photos.app_archive import label_photos, read_facts
from mmclca.datasets.photos.spellings import normalize_name
from mmclca.errors import Error
from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.record import FitRecord
from mmclca.fitting.report import write_report
from mmclca.fitting.wording import count_classes, count_photos
from mmclca.languages import text
from mmclca.utils.files import replace_text

from .loaded_model import ModelVersion
from .names import MAX_LETTERS, name_upload, safe_name
from .uploads import store, unpacked

# hide advice for the command line in a report
NO_TERMINAL = '<style>.terminal { display: none }</style>'
NAME = 'name.txt'  # file with the name of a renamed model
MAX_SHOWN = 80  # letters of a refused name


class KeptModel:
    """Photos of a model, and the model once it is trained.

    Args:
        folder (Path): Its folder, which may not exist.
    """

    def __init__(self, folder: Path):
        self.folder, self.photos = folder, folder / 'photos'
        self.added = folder / 'added'  # photos added after the training
        self.files = FitFolder(folder / 'model')

    @property
    def name(self) -> str:
        """Name for users; a renamed model keeps its folder."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return (self.folder / NAME).read_text('utf-8')
        return self.folder.name

    @property
    def has_photos(self) -> bool:
        """Whether photos are stored."""
        return self.photos.is_dir()

    @property
    def is_ready(self) -> bool:
        """Whether the model can be used, even before fine-tuning."""
        return self.files.model.is_file() and self.files.file.is_file()

    def require_ready(self) -> None:
        """Raise an ``Error`` if the model cannot be used yet."""
        if not self.is_ready:
            raise Error(text('page.not_trained', name=self.name))

    @property
    def version(self) -> ModelVersion:
        """Key of the present model for :func:`.load_version`."""
        time = self.files.model.stat().st_mtime_ns
        return ModelVersion(self.folder, time, self.name)

    @property
    def can_undo(self) -> bool:
        """Whether there is a previous model."""
        return self.files.previous.model.is_file()

    def add_photos(
        self, files: Sequence[Path], names: Sequence[str], label: str
    ) -> dict[str, str]:
        """Store uploaded photos next to the training photos.

        Photos from refused and killed changes are removed before.

        Args:
            files (Sequence[Path]): Files of a folder, or one ZIP archive.
            names (Sequence[str]): Paths of the files in their folder.
            label (str): Class for all photos; empty if folders name it.

        Returns:
            dict[str, str]: Class by path.

        Raises:
            Error: As in :func:`.uploads.store`, or if a class is missing, or
                the photos are from the phone app of another model.
        """
        self.remove_unused_photos()
        self.added.mkdir(exist_ok=True)
        numbers = [int(x.name) for x in self.added.iterdir()]
        target = self.added / str(max(numbers, default=0) + 1)
        with unpacked(files, names, self.folder) as (top, _):
            if facts := read_facts(top):
                title = name_upload(names, files)
                classes = self.read_record().photos.classes
                facts.check_model(Path(title), classes)
            read_classes(top, label)
            top.rename(target)
        return read_classes(target, label)

    def remove_unused_photos(self) -> None:
        """Remove added photos that neither this nor the previous model has."""
        used = {
            photo.path
            for files in (self.files, self.files.previous)
            if files.table.is_file()
            for photo in files.read_photos()
        }
        for folder in self.added.glob('*'):
            if not any(str(path) in used for path in folder.rglob('*')):
                remove_folder(folder)

    def rename(self, name: str) -> None:
        """Give the model another name, also in its report."""
        with self.files.locked():
            replace_text(self.folder / NAME, name)
            if self.is_ready:
                record = self.files.read_complete()
                self.files.write(replace(record, name=name))
        if self._has_report():
            self._write_report()

    def read_record(self) -> FitRecord:
        """Read fit.json."""
        return self.files.read_complete()

    def complete_report(self) -> None:
        """Write the report of a stopped training, if it has a model."""
        if self.files.model.is_file() and not self._has_report():
            self._write_report()

    def _write_report(self) -> None:
        used = {photo.path for photo in self.files.read_used_photos()}
        photos = {path for path in used if is_below(path, self.folder)}
        write_report(self.files.path, photos)

    def end_training(self) -> None:
        """Write a missing report; without it, the model can be used, too."""
        with suppress(OSError, Error):
            self.complete_report()

    def frame_report(self) -> str:
        """Show the report without its scripts, as one line of Markdown."""
        if not self._has_report():
            return ''
        page = self.files.report.read_text('utf-8')
        # links in a frame are relative to the page around it
        page = page.replace('href="#', 'href="about:srcdoc#')
        content = escape(page + NO_TERMINAL).replace('\n', '&#10;')
        title = text('page.report')
        style = f'style="width: 100%; height: 80vh" title="{title}"'
        return f'<iframe sandbox {style} srcdoc="{content}"></iframe>'

    def write_zip(self, out: Path) -> None:
        """Write the model files, without logs, features and exports."""
        with ZipFile(out, 'w') as archive:
            for name in FILES:
                if (self.files.path / name).is_file():
                    archive.write(self.files.path / name, name)

    def _has_report(self) -> bool:
        report = self.files.report
        return report.is_file() and report.stat().st_size > 0


class ModelStore:
    """Models below a folder.

    Args:
        folder (Path): The folder.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._summaries: dict[Path, Summary] = {}

    def list_models(self) -> list[KeptModel]:
        """List the models with photos."""
        folders = [path.parent for path in self.folder.glob('*/photos')]
        # those being deleted are hidden
        return [KeptModel(x) for x in folders if not x.name.startswith('.')]

    def names(self) -> list[str]:
        """List the model names."""
        return sorted(model.name for model in self.list_models())

    def find(self, name: str) -> KeptModel:
        """Return a model, which may not exist; refuse an unsafe name."""
        if not isinstance(name, str):  # of a forged request
            raise Error(text('page.name.missing'))
        for model in self.list_models():
            if model.name == name:
                return model
        folder = self.folder / self.check_name(name)
        number = 2
        while (folder / NAME).is_file():  # a renamed model
            folder = folder.with_name(f'{name} {number}')
            number += 1
        return KeptModel(folder)

    def check_name(self, name: str) -> str:
        """Return a normalized name; refuse an unsafe one."""
        folder = self.folder / safe_name(name)
        is_safe = folder.name == normalize_name(name)
        if not (is_safe and is_below(folder, self.folder)):
            raise Error(
                text(
                    'page.name.refused',
                    name=repr(name)[:MAX_SHOWN],
                    letters=MAX_LETTERS,
                )
            )
        return folder.name

    def rename(self, model: KeptModel, name: str) -> None:
        """Rename a model; refuse a name in use."""
        name = self.check_name(name)
        if name in self.names() or (self.folder / name).exists():
            raise Error(text('page.name.taken', name=name))
        model.rename(name)

    def delete(self, model: KeptModel) -> None:
        """Delete a model with its photos."""
        with locked(model.folder, 'page'), model.files.locked():
            pass  # no command uses it
        hidden = model.folder.with_name(f'.deleted {model.folder.name}')
        remove_folder(hidden)  # left by a killed page
        model.folder.rename(hidden)
        self._summaries.pop(model.folder, None)
        remove_folder(hidden)

    def summarize(self, model: KeptModel) -> str:
        """Return the number of photos per class, and the problems."""
        if model.is_ready:  # classes may have changed since the training
            photos = model.read_record().photos
            return Summary(photos.counts, photos.problems).describe()
        if model.folder not in self._summaries:
            self._summaries[model.folder] = summarize_photos(model.photos)
        return self._summaries[model.folder].describe()

    def add(
        self, model: KeptModel, files: Sequence[Path], names: Sequence[str]
    ) -> None:
        """Store uploaded photos, see :func:`.uploads.store`."""
        notes, summary = store(files, names, model.folder, summarize_photos)
        self._summaries[model.folder] = replace(summary, notes=notes)


@dataclass(frozen=True)
class Summary:
    """Photos of a model.

    Args:
        counts (dict[str, int]): Number of photos per class.
        problems (list[Problem]): Problems of the photos.
        notes (list[str]): Remarks on the upload. Defaults to [].
    """

    counts: dict[str, int]
    problems: list[Problem]
    notes: list[str] = field(default_factory=list)

    def describe(self) -> str:
        """Return remarks, problems and the photos per class in lines."""
        photos = count_photos(sum(self.counts.values()))
        classes = count_classes(len(self.counts))
        lines = [
            *self.notes,
            *(problem.describe() for problem in self.problems),
            text('page.summary', photos=photos, classes=classes),
            *(f'{name}: {number}' for name, number in self.counts.items()),
        ]
        return '\n'.join(lines)


def summarize_photos(folder: Path) -> Summary:
    """Return the number of photos per class in a folder, and the problems."""
    checked = check_photos(read_photos(folder))
    return Summary(checked.photos.counts(), checked.list_problems())


def read_classes(folder: Path, label: str) -> dict[str, str]:
    """Return classes by path for the photos in a folder.

    Args:
        folder (Path): Photos, in folders named as the classes, or as the
            phone app exports them.
        label (str): Class for all photos; empty if folders name it.

    Raises:
        Error: If photos or a class are missing.
    """
    facts = read_facts(folder)
    if facts and not label:
        return label_photos(folder, facts)
    paths = find_images([folder])
    if not paths:
        raise Error(text('page.upload.no_photo', folder=folder.name))
    if label:
        return dict.fromkeys(map(str, paths), label)
    classes = {}
    for path in paths:
        name, *inner = Path(path).relative_to(folder).parts
        if not inner:
            raise Error(text('page.upload.no_class', name=name))
        classes[str(path)] = normalize_name(name) or name
    return classes
