# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Formats of ``export``: their files, options and modules.

A new format is a module in ``mmclca/deployment`` with a function
``write(source, out, **options)``, see :class:`mmclca.deployment.ExportSource`,
and an entry in ``FORMATS``. Command line, page and tests derive from it. This
module imports nothing heavy, so that ``export --help`` responds at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mmclca.errors import Error


@dataclass(frozen=True)
class ExportOption:
    """Option of a format: ``--NAME``, and a keyword of its ``write``.

    Args:
        name (str): Name, as a keyword.
        summary (str): Meaning, for ``--help``.
        default (object): Default. False for a flag.
        choices (tuple[str]): Allowed values. Defaults to (), any.
        bounds (tuple[int, int], optional): Minimum and maximum of an integer.
            Defaults to None.
        convert (Callable): Conversion from text. Defaults to ``str``.
    """

    name: str
    summary: str
    default: Any = None
    choices: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    convert: Callable[[str], Any] = str

    @property
    def flag(self) -> str:
        """Command-line option."""
        return f'--{self.name.replace("_", "-")}'


@dataclass(frozen=True)
class Download:
    """Download of a format on the page.

    Args:
        title (str): Name of the file, after that of the model.
        waiting (str): Key of the text while it is written.
        note (str): Key of the text on its use; ``{file}`` is its name.
    """

    title: str
    waiting: str
    note: str


@dataclass(frozen=True)
class ExportFormat:
    """Format of ``export``.

    Args:
        name (str): Value of ``--format``.
        summary (str): Content, for ``--help`` and the docs.
        module (str): Module in ``mmclca.deployment`` that writes it.
        file (str): Name of the file; ``*`` is the name of the checkpoint. A
            name without a dot is a folder.
        options (tuple[ExportOption]): Its options.
        has_flag (bool): Whether ``--NAME`` selects it, too. Defaults to False.
        next_steps (tuple[tuple[str, str]]): Labels and texts to print after
            the export; ``{out}`` is the quoted path. Defaults to ().
        download (Download, optional): Download on the page. Defaults to None:
            the page does not offer the format.
        model_file (str): Name of the model within a folder. Defaults to '':
            the format is a file.
    """

    name: str
    summary: str
    module: str
    file: str
    options: tuple[ExportOption, ...] = ()
    has_flag: bool = False
    next_steps: tuple[tuple[str, str], ...] = ()
    download: Download | None = None
    model_file: str = ''

    def select_variant(self, settings: dict[str, Any]) -> 'ExportFormat':
        """Return the format as its options change it."""
        if not settings.get(SINGLE_FILE.name):
            return self
        file = f'{self.file}.html'
        return replace(self, file=file, model_file='', next_steps=SEND)

    def list_patterns(self) -> list[str]:
        """List patterns of exported models in the folder of a checkpoint."""
        variants = [self]
        if SINGLE_FILE in self.options:
            variants.append(self.select_variant({SINGLE_FILE.name: True}))
        return [variant.model_pattern for variant in variants]

    @property
    def is_folder(self) -> bool:
        """Whether the format is a folder instead of a file."""
        return '.' not in self.file

    @property
    def suffix(self) -> str:
        """Ending of the file, such as '.onnx'; empty for a folder."""
        return Path(self.file).suffix

    @property
    def model_pattern(self) -> str:
        """Pattern of exported models, relative to the checkpoint's folder."""
        if self.is_folder:
            return f'{self.file}/{self.model_file}'
        return self.file

    @property
    def flag(self) -> str:
        """Command-line option that selects the format."""
        return f'--{self.name}' if self.has_flag else f'--format {self.name}'

    def name_file(self, checkpoint: Path) -> Path:
        """Return the default path next to a checkpoint."""
        return checkpoint.with_name(self.file.replace('*', checkpoint.stem))

    def select_options(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of the format from those of all formats.

        Args:
            settings (dict): Value by option name.

        Raises:
            Error: If an option of other formats is not at its default.
        """
        names = [option.name for option in self.options]
        for option in list_options():
            value = settings[option.name]
            if option.name not in names and value != option.default:
                flags = [
                    other.flag
                    for other in FORMATS.values()
                    if option in other.options
                ]
                raise Error(
                    f'{option.flag} needs {" or ".join(flags)}, found '
                    f'{self.flag}'
                )
        return {name: settings[name] for name in names}


INPUT = ExportOption(
    'input',
    'one RGB photo of any size, or a batch of normalized images',
    'photo',
    choices=('photo', 'batch'),
)
OPSET = ExportOption(
    'opset',
    'ONNX operator set, 18 to 22',
    18,
    # ONNX Runtime fails on the Attention operator in opset 23 and above
    bounds=(18, 22),
)
PHOTOS = ExportOption(
    'photos',
    'folder of photos for the 8-bit comparison, if changed since fit',
    convert=Path,
)
FLOAT = ExportOption('float', 'web app with 32-bit weights', False)
NAME = ExportOption(
    'name', 'name of the web app (default: title of the report)'
)
PHOTOS_IN_APP = ExportOption(
    'photos_in_app', 'show one training photo per class in the web app', False
)
SINGLE_FILE = ExportOption(
    'single_file', 'web app as one HTML file, to send and open', False
)
INFER = (('Next', 'python tools/deployment/infer_onnx.py {out} PHOTOS'),)
HOST = (
    ('Next', 'on a phone in the same network: run again with --serve;'),
    ('', 'anywhere: drag the folder onto a web host with https'),
    ('', '(docs/web_app.md lists some)'),
    ('Try it', 'python -m http.server --directory {out}'),
    ('', 'and open http://localhost:8000 on this computer'),
)
SEND = (
    (
        'Next',
        'send the file, and open it in a browser; it has no position and',
    ),
    ('', 'no updates, and previews of mail do not run it'),
)
PHONE_APP = Download(
    'phone app', 'page.download.app_waiting', 'page.download.app'
)
FORMATS = {
    export_format.name: export_format
    for export_format in (
        ExportFormat(
            'onnx',
            'ONNX file',
            'onnx_file',
            '*.onnx',
            (INPUT, OPSET),
            next_steps=INFER,
        ),
        ExportFormat(
            'int8',
            'ONNX file with 8-bit products and convolution weights',
            'int8',
            '*.int8.onnx',
            (INPUT, OPSET, PHOTOS),
            has_flag=True,
            next_steps=INFER,
        ),
        ExportFormat(
            'web',
            'web app for phones (a folder), 8-bit weights',
            'web_app',
            'web',
            (OPSET, FLOAT, NAME, PHOTOS, PHOTOS_IN_APP, SINGLE_FILE),
            has_flag=True,
            next_steps=HOST,
            download=PHONE_APP,
            model_file='model.onnx',
        ),
        ExportFormat('pt2', 'file for torch.export.load', 'pt2', '*.pt2'),
    )
}


def find_format(model: Path) -> ExportFormat:
    """Return the format of an exported model by the names of its files."""
    matching = [x for x in FORMATS.values() if model.match(x.model_pattern)]
    return max(matching, key=lambda x: len(x.model_pattern))


def list_options() -> Iterator[ExportOption]:
    """Yield the options of all formats, each once."""
    options = (x for each in FORMATS.values() for x in each.options)
    yield from dict.fromkeys(options)
