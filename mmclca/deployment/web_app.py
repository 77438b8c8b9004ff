# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Export of a classifier to a web app, which also works offline."""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from mmclca.evaluation.fusion import DEPENDENCE
from mmclca.utils.files import replace_bytes

from .onnx_file import OLDEST_OPSET, export_source
from .onnx_runtime import open_session
from .photo_input import add_photo_input
from .small_weights import store_in_8_bits
from .source import Exported, ExportSource, ModelTitle
from .web_pictures import encode_picture
from .web_single_file import START, join_files
from .web_texts import write_page, write_texts

MODEL, MANIFEST = 'model.onnx', 'manifest.webmanifest'
_SOURCES = Path(__file__).parent / 'web'
_RUNTIME = _SOURCES / 'runtime/version.txt'  # written last


def write(
    source: ExportSource,
    out: Path,
    *,
    opset: int = OLDEST_OPSET,
    float: bool = False,
    name: str | None = None,
    photos: Path | None = None,
    photos_in_app: bool = False,
    single_file: bool = False,
) -> Exported:
    """Write the format ``web``: a folder with the files of a web app.

    With ``single_file``, ``out`` is one HTML file.

    Weights are stored in 8 bits unless ``float``. Products are computed in 32
    bits: with 8 bits, token reduction changes too many predictions.
    """
    check_web_runtime()
    title = source.describe()
    if name:
        title = replace(title, name=name)
    class_photos = source.find_class_photos() if photos_in_app else []
    with TemporaryDirectory() as folder:
        full, small = Path(folder, '32.onnx'), Path(folder, '8.onnx')
        difference = export_source(source, full, opset)
        models, comparison = [full], None
        if not float:
            store_in_8_bits(full, small)
            comparison = source.compare(full, small, photos)
            models.append(small)
        add_photo_input(source, *models)
        if single_file:
            content = build_files(models[-1], title, class_photos)
            replace_bytes(out, join_files(content))
            files = [out]
        else:
            files = write_web_app(out, models[-1], title, class_photos)
    return Exported(files, difference, comparison)


def check_web_runtime() -> None:
    """Raise ``FileNotFoundError`` if onnxruntime-web is not installed."""
    if not _RUNTIME.is_file():
        raise FileNotFoundError(
            'a web app needs onnxruntime-web, which was not installed with '
            'mmclca; run in a checkout of mmclca: '
            f'python tools/dev/fetch_web_runtime.py {_RUNTIME.parent}'
        )


def write_web_app(
    folder: Path,
    model: Path,
    title: ModelTitle,
    class_photos: Sequence[Path] = (),
) -> list[Path]:
    """Write the files of a web app, and replace an earlier app.

    The service worker stores the digests of all files, so browsers keep an
    earlier app until all files of the new one are on the host.

    Args:
        folder (Path): Folder for the app; other files in it are kept.
        model (Path): ONNX file that takes one photo, with metadata.
        title (ModelTitle): Name of the app, and what was measured.
        class_photos (Sequence[Path]): One photo per class to show. Defaults
            to (): none.

    Returns:
        list[Path]: The written files.

    Raises:
        FileNotFoundError: See :func:`check_web_runtime`.
        Error: If a photo cannot be read.
    """
    files = build_files(model, title, class_photos)
    del files[START]
    files['sw.js'] = _write_service_worker(files)
    for file in sorted(files, key='sw.js'.__eq__):  # the service worker last
        replace_bytes(folder / file, files[file])
    return [folder / file for file in files]


def build_files(
    model: Path, title: ModelTitle, class_photos: Sequence[Path]
) -> dict[str, bytes]:
    """Return the files of a web app by name; see :func:`write_web_app`.

    The service worker lacks the digests of the files.
    """
    check_web_runtime()
    files = _read_sources()
    files['text.js'] = write_texts(files['text.js'])
    files['index.html'] = write_page(files['index.html'])
    files[MODEL] = model.read_bytes()
    manifest = json.loads(files[MANIFEST])
    names = dict(name=title.name, short_name=title.name)
    files[MANIFEST] = _to_json(manifest | names)
    metadata = open_session(model).get_modelmeta().custom_metadata_map
    description = asdict(title) | dict(
        file=MODEL,
        integrity=compute_integrity(files[MODEL]),
        digest=sha256(files[MODEL]).hexdigest()[:12],
        classes=json.loads(metadata['classes']),
        class_photos=[*map(encode_picture, class_photos)],
        threshold=json.loads(metadata['threshold']),
        sure=json.loads(metadata.get('sure', 'null')),
        dependence=json.loads(metadata.get('dependence', f'{DEPENDENCE}')),
        runtime={
            file: compute_integrity(content)
            for file, content in files.items()
            if file.startswith('runtime/ort')
        },
    )
    files['model.json'] = _to_json(description)
    return files


def _read_sources() -> dict[str, bytes]:
    """Return the files that all apps share, by their name in the app.

    Many hosts lack a media type for .mjs, and browsers then refuse it.
    """
    files = {}
    for path in _SOURCES.rglob('*'):
        if path.is_file():
            name = path.relative_to(_SOURCES).as_posix()
            if name.endswith('.mjs'):
                name = name.removesuffix('.mjs') + '.js'
            files[name] = path.read_bytes()
    return files


def _to_json(content: dict) -> bytes:
    """Encode a dict as JSON."""
    return json.dumps(content, indent=1).encode()


def compute_integrity(content: bytes) -> str:
    """Return a digest as browsers check it."""
    return f'sha256-{b64encode(sha256(content).digest()).decode()}'


def _write_service_worker(files: dict[str, bytes]) -> bytes:
    """Add the digests of all other files to the service worker."""
    digests = {
        name: compute_integrity(content) for name, content in files.items()
    }
    script = files['sw.js'].decode()
    del digests['sw.js']
    digests['./'] = digests.pop('index.html')  # hosts may redirect its name
    listing = json.dumps(digests, indent=2, sort_keys=True)
    version = sha256(listing.encode()).hexdigest()[:12]
    script = script.replace('FILES = {}', f'FILES = {listing}')
    return script.replace('@VERSION@', version).encode()
