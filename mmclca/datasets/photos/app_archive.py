# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read photos that were corrected in the phone app, exported as ZIP archive.

It has one folder per class, and ``app.json`` with facts about the app.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from mmclca.checkpoints.gate.json_parsing import load_json_object, parse_json
from mmclca.errors import Error
from mmclca.utils.messages import join_first

FACTS = 'app.json'
# folder and file as the app names them
_PHOTO = re.compile(r'[^./\\\0][^/\\\0]*/[^./\\\0][^/\\\0]*\.jpg')
_TABLE = 'identified.csv'


@dataclass(frozen=True)
class AppFacts:
    """Facts about the app that exported photos.

    Args:
        name (str): Name of the app.
        model (str): Digest of its model.
        classes (list[str]): Classes of its model.
        folders (dict[str, str]): Class by folder.
    """

    name: str
    model: str
    classes: list[str]
    folders: dict[str, str]

    def check_model(self, source: Path, classes: Collection[str]) -> None:
        """Refuse photos from the app of another model.

        Some classes may differ: they may have been renamed or removed.

        Args:
            source (Path): The photos, for the message.
            classes (Collection[str]): Classes of the model.

        Raises:
            Error: If the app knows fewer than half of the classes.
        """
        other = [name for name in self.classes if name not in classes]
        if 2 * len(other) > len(self.classes):
            raise Error(
                f'{source} is from the app {self.name!r} of another model: '
                f'{len(other)} of its {len(self.classes)} classes, such as '
                f'{join_first(other, 3)}, are not in this model; give the '
                'model of that app'
            )


def is_archive(path: Path) -> bool:
    """Return whether a path is that of a ZIP archive, by its name."""
    return path.suffix.lower() == '.zip'


def unpack_archive(path: Path) -> Path:
    """Unpack an archive of the app into a folder next to it.

    A folder that was unpacked before is not written again.

    Args:
        path (Path): ZIP archive.

    Returns:
        Path: The folder, named as the archive.

    Raises:
        OSError: If the archive cannot be read, or the folder not be written.
        Error: If the archive is damaged or not of the app, or the folder has
            other files.
    """
    try:
        with ZipFile(path) as archive:
            sizes = {x.filename: x.file_size for x in archive.infolist()}
            _check_names(path, sizes)
            damaged = archive.testzip()
    except (BadZipFile, NotImplementedError, RuntimeError) as error:
        raise Error(f'{path} cannot be unpacked: {error}') from error
    if damaged:
        raise Error(f'{path} is damaged ({damaged}); export it again')
    folder = path.with_suffix('')
    if folder.exists():
        present = {
            x.relative_to(folder).as_posix(): x.stat().st_size
            for x in folder.rglob('*')
            if x.is_file()
        }
        if present != sizes:
            raise Error(
                f'{folder} already exists and has other files than {path.name}'
                '; rename the archive'
            )
        return folder
    with TemporaryDirectory(dir=path.parent, prefix='.unpacked-') as draft:
        photos = Path(draft, folder.name)
        with ZipFile(path) as archive:
            archive.extractall(photos)
        photos.rename(folder)
    return folder


def _check_names(path: Path, names: Collection[str]) -> None:
    """Refuse an archive with files that the app does not write."""
    if FACTS not in names:
        raise Error(
            f'{path} is not an archive of the phone app (without {FACTS}); '
            'unpack it, and give the folder of the photos'
        )
    for name in names:
        if name not in (FACTS, _TABLE) and not _PHOTO.fullmatch(name):
            raise Error(
                f'{path} has a file that the phone app does not write '
                f'({name!r:.80}); unpack it, and give the folder of the photos'
            )


def read_facts(folder: Path) -> AppFacts | None:
    """Read the facts in an unpacked archive; None in other folders.

    Other programs write files with this name, too: these have no folders.

    Raises:
        OSError: If the file cannot be read.
        Error: If it is damaged.
    """
    file = folder / FACTS
    if not file.is_file():
        return None
    content = file.read_bytes()
    try:
        facts = load_json_object(content)
        if 'folders' not in facts:
            return None
        return parse_json(AppFacts, facts, FACTS)
    except Error as error:
        raise Error(f'{file} is damaged: {error}') from error


def read_class_names(folder: Path) -> dict[str, str]:
    """Return the class by folder name; empty if not from the app.

    Raises:
        OSError: If the facts cannot be read.
        Error: If they are damaged.
    """
    facts = read_facts(folder)
    return facts.folders if facts else {}


def label_photos(folder: Path, facts: AppFacts) -> dict[str, str]:
    """Return the class of each photo of an unpacked archive, by path.

    Raises:
        Error: If there are no photos.
    """
    labels = {
        str(path): facts.folders.get(path.parent.name, path.parent.name)
        for path in sorted(folder.glob('*/*.jpg'))
    }
    if not labels:
        raise Error(f'{folder} has no photos; mark photos in the app')
    return labels
