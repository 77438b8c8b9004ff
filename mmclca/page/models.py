# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Photos and models on the disk: one folder per model name."""

from collections.abc import Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from zipfile import ZipFile

from mmclca.checkpoints.gate.folders import is_below
from mmclca.checkpoints.model_folder import FILES
from mmclca.datasets.photos import check_photos, read_photos
from mmclca.datasets.photos.spellings import normalize_name
from mmclca.errors import Error
from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.record import FitRecord
from mmclca.fitting.report import write_report

from .loaded_model import ModelVersion
from .names import MAX_LETTERS, safe_name
from .uploads import store

# hide advice for the command line in a report
NO_TERMINAL = '<style>.terminal { display: none }</style>'


class KeptModel:
    """Photos of a model, and the model once it is trained.

    Args:
        folder (Path): Its folder, which may not exist.
    """

    def __init__(self, folder: Path):
        self.folder, self.photos = folder, folder / 'photos'
        self.files = FitFolder(folder / 'model')

    @property
    def name(self) -> str:
        """Name for users."""
        return self.folder.name

    @property
    def has_photos(self) -> bool:
        """Whether photos are stored."""
        return self.photos.is_dir()

    @property
    def is_ready(self) -> bool:
        """Whether the model can be used, even before fine-tuning."""
        return self.files.model.is_file() and self.files.file.is_file()

    @property
    def is_finished(self) -> bool:
        """Whether a training ended by itself, and noted its time."""
        return self.read_record().seconds > 0

    @property
    def version(self) -> ModelVersion:
        """Key of the present model for :func:`.load_version`."""
        return ModelVersion(self.folder, self.files.model.stat().st_mtime_ns)

    def read_record(self) -> FitRecord:
        """Read fit.json."""
        return self.files.read_complete()

    def complete_report(self) -> None:
        """Write the report of a stopped training, if it has a model."""
        if self.files.model.is_file() and not self._has_report():
            used = {photo.path for photo in self.files.read_used_photos()}
            photos = {path for path in used if is_below(path, self.photos)}
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
        style = 'style="width: 100%; height: 80vh" title="Report"'
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
        self._summaries: dict[Path, str] = {}

    def names(self) -> list[str]:
        """List the models with photos."""
        paths = self.folder.glob('*/photos')
        return sorted(path.parent.name for path in paths)

    def find(self, name: str) -> KeptModel:
        """Return a model, which may not exist; refuse an unsafe name."""
        if not isinstance(name, str):  # of a forged request
            raise Error('The name of the model is missing. Please type it.')
        if name in self.names():
            return KeptModel(self.folder / name)
        folder = self.folder / safe_name(name)
        is_safe = folder.name == normalize_name(name)
        if not (is_safe and is_below(folder, self.folder)):
            raise Error(
                f'The name {name!r:.80} is not allowed. Please use 1 to '
                f'{MAX_LETTERS} letters, digits or spaces, without '
                '/ \\ < > : " | ? * and without a dot or hyphen at the start.'
            )
        return KeptModel(folder)

    def summarize(self, model: KeptModel) -> str:
        """Return the number of photos per class, and the problems."""
        if model.folder not in self._summaries:
            self._summaries[model.folder] = summarize_photos(model.photos)
        return self._summaries[model.folder]

    def add(
        self, model: KeptModel, files: Sequence[Path], names: Sequence[str]
    ) -> None:
        """Store uploaded photos, see :func:`.uploads.store`."""
        self._summaries[model.folder] = store(
            files, names, model.folder, summarize_photos
        )


def summarize_photos(folder: Path) -> str:
    """Return the number of photos per class in a folder, and the problems."""
    checked = check_photos(read_photos(folder))
    counts = checked.photos.counts()
    lines = [problem.describe() for problem in checked.list_problems()]
    lines.append(f'{sum(counts.values())} photos, {len(counts)} classes')
    lines += [f'{name}: {number}' for name, number in counts.items()]
    return '\n'.join(lines)
