# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Export of a classifier to a web app, which also works offline."""

import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from mmclca.utils.files import replace_bytes

from .onnx_file import onnx_session

MODEL, MANIFEST = 'model.onnx', 'manifest.webmanifest'
_SOURCES = Path(__file__).parent / 'web'
_RUNTIME = _SOURCES / 'runtime/version.txt'  # written last


def check_web_runtime() -> None:
    """Raise ``FileNotFoundError`` if onnxruntime-web is not installed."""
    if not _RUNTIME.is_file():
        raise FileNotFoundError(
            'a web app needs onnxruntime-web, which was not installed with '
            'mmclca; run in a checkout of mmclca: '
            f'python tools/dev/fetch_web_runtime.py {_RUNTIME.parent}'
        )


def write_web_app(
    folder: Path, model: Path, name: str, accuracy: str = ''
) -> list[Path]:
    """Write the files of a web app, and replace those of an earlier one.

    The service worker stores the digests of all files, so browsers keep an
    earlier app until all files of the new one are on the host.

    Args:
        folder (Path): Folder for the app; other files in it are kept.
        model (Path): ONNX file that takes one photo, with metadata.
        name (str): Name of the app.
        accuracy (str): Accuracy of the model in words. Defaults to ''.

    Returns:
        list[Path]: The written files.

    Raises:
        FileNotFoundError: See :func:`check_web_runtime`.
    """
    check_web_runtime()
    sources = [path for path in _SOURCES.rglob('*') if path.is_file()]
    files = {_name_of(path): path.read_bytes() for path in sources}
    files[MODEL] = model.read_bytes()
    named = dict(json.loads(files[MANIFEST]), name=name, short_name=name)
    files[MANIFEST] = _to_json(named)
    facts = dict(name=name, file=MODEL, **_facts_of(model, files[MODEL]))
    facts['about'] = _describe(len(facts['classes']), accuracy)
    facts['runtime'] = {
        x: _integrity(files[x]) for x in files if x.startswith('runtime/ort')
    }
    files['model.json'] = _to_json(facts)
    files['sw.js'] = _service_worker(files)
    for file in sorted(files, key='sw.js'.__eq__):  # the service worker last
        replace_bytes(folder / file, files[file])
    return [folder / file for file in files]


def _name_of(source: Path) -> str:
    """Return the name of a file in the app.

    Many hosts have no media type for .mjs, and browsers then refuse it.
    """
    name = source.relative_to(_SOURCES).as_posix()
    return name.removesuffix('.mjs') + '.js' * name.endswith('.mjs')


def _describe(classes: int, accuracy: str) -> str:
    if not accuracy:
        return f'Identifies {classes} classes.'
    return (
        f'Identifies {classes} classes with {accuracy}. To learn its accuracy '
        'elsewhere, test it with photos whose classes you know.'
    )


def _to_json(facts: dict) -> bytes:
    return json.dumps(facts, indent=1).encode()


def _integrity(content: bytes) -> str:
    return f'sha256-{b64encode(sha256(content).digest()).decode()}'


def _facts_of(path: Path, content: bytes) -> dict:
    """Return classes and threshold in the metadata, and the digest."""
    metadata = onnx_session(path).get_modelmeta().custom_metadata_map
    return dict(
        integrity=_integrity(content),
        digest=sha256(content).hexdigest()[:12],
        classes=json.loads(metadata['classes']),
        threshold=json.loads(metadata['threshold']),
    )


def _service_worker(files: dict[str, bytes]) -> bytes:
    """Add the digests of all other files to the service worker."""
    digests = {name: _integrity(content) for name, content in files.items()}
    text = files['sw.js'].decode()
    del digests['sw.js']
    digests['./'] = digests.pop('index.html')  # hosts may redirect its name
    listed = json.dumps(digests, indent=2, sort_keys=True)
    version = sha256(listed.encode()).hexdigest()[:12]
    text = text.replace('FILES = {}', f'FILES = {listed}')
    return text.replace('@VERSION@', version).encode()
