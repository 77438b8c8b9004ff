# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Downloads of the page: a report, a model and its exports."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from mmclca.checkpoints.gate.folders import remove_folder
from mmclca.export_formats import FORMATS, ExportFormat
from mmclca.languages import Note, text
from mmclca.utils.files import replace_file

from .models import KeptModel
from .process import run_task


@dataclass(frozen=True)
class Package:
    """Files to download, with a note in Markdown."""

    files: list[Path]
    note: str


class Downloads:
    """Files of models to download, written once per version of a model.

    Visitors may ask for the same model at the same time: the second one waits.

    Args:
        folder (Path): Folder for the files.
    """

    def __init__(self, folder: Path):
        self.folder, self._lock = folder, Lock()
        self._comparisons: dict[Path, list[Note]] = {}  # by export

    def pack(self, model: KeptModel) -> Iterator[Package]:
        """Copy report and model; then export the model, in minutes.

        Yields:
            Package: First without exports, then with one more each.

        Raises:
            Error: If the model cannot be exported.
        """
        with self._lock:
            model.complete_report()
            folder = self._folder_for(model)
            report = folder / f'{model.name} report.html'
            archive = folder / f'{model.name} model.zip'
            if not archive.is_file():
                shutil.copyfile(model.files.report, report)
                replace_file(archive, model.write_zip)
        files = [report, archive]
        notes = [
            text('page.download.report', file=report.name),
            text('page.download.model', file=archive.name),
        ]
        for export_format in FORMATS.values():
            if download := export_format.download:
                waiting = text(download.waiting)
                yield Package(files, '\n\n'.join([*notes, waiting]))
                file = self._export(model, export_format, folder)
                note = text(download.note, file=file.name)
                files = [*files, file]
                notes += [note, describe_comparison(self._comparisons[file])]
        yield Package(files, '\n\n'.join(notes))

    def _export(
        self, model: KeptModel, export_format: ExportFormat, folder: Path
    ) -> Path:
        """Write an export into a folder; a web app becomes a ZIP archive."""
        assert export_format.download is not None
        is_folder = export_format.is_folder
        suffix = '.zip' if is_folder else export_format.suffix
        title = f'{model.name} {export_format.download.title}'
        file = folder / f'{title}{suffix}'
        with self._lock, TemporaryDirectory(dir=folder) as scratch:
            if file not in self._comparisons:
                out = Path(scratch, f'export{export_format.suffix}')
                settings = dict(
                    folder=str(model.files.path),
                    format_name=export_format.name,
                    out=str(out),
                    photos=str(model.photos),
                    name=model.name,
                )
                comparison = run_task('export', settings)
                notes = [Note(**note) for note in comparison]
                if is_folder:
                    out = Path(shutil.make_archive(str(out), 'zip', out))
                out.replace(file)
                self._comparisons[file] = notes
        return file

    def _folder_for(self, model: KeptModel) -> Path:
        """Create the folder for the present version; remove earlier ones."""
        times = [
            path.stat().st_mtime_ns
            for path in (model.files.model, model.files.report)
        ]
        folder = self.folder / model.name / '-'.join(map(str, times))
        if not folder.is_dir():
            remove_folder(folder.parent)
            folder.mkdir(parents=True)
        return folder


def describe_comparison(notes: list[Note]) -> str:
    """Describe an 8-bit export in a line, see :func:`.export_folder`."""
    if not notes:
        return ''
    label, facts = notes
    return text('page.download.compared', label=label, facts=facts)
