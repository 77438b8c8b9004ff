# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Export of a classifier to a web app, which also works offline."""

import json
from base64 import b64encode
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from mmclca.datasets.synthetic_leaves import draw_leaf, make_cultivars
from mmclca.utils.files import replace_bytes

from .onnx_file import onnx_session

MODEL = 'model.onnx'
_SOURCES = Path(__file__).parent / 'web'
_RUNTIME = _SOURCES / 'runtime/version.txt'  # written last
_ICONS = 512, 192  # px


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
) -> None:
    """Write the files of a web app, and replace those of an earlier one.

    The service worker stores the digests of all files, so browsers keep an
    earlier app until all files of the new one are on the host.

    Args:
        folder (Path): Folder for the app; other files in it are kept.
        model (Path): ONNX file that takes one photo, with metadata.
        name (str): Name of the app.
        accuracy (str): Accuracy of the model in words. Defaults to ''.

    Raises:
        FileNotFoundError: See :func:`check_web_runtime`.
    """
    check_web_runtime()
    paths = [path for path in _SOURCES.rglob('*') if path.is_file()]
    files = {
        MODEL: model.read_bytes(),
        'manifest.webmanifest': _to_json(_manifest(name)),
        **{_icon(side): _draw_icon(side) for side in _ICONS},
        **{str(x.relative_to(_SOURCES)): x.read_bytes() for x in paths},
    }
    facts = dict(name=name, file=MODEL, **_facts_of(model, files[MODEL]))
    accuracy = accuracy and f' with {accuracy}'
    facts['about'] = f'Identifies {len(facts["classes"])} classes{accuracy}.'
    files['model.json'] = _to_json(facts)
    files['sw.js'] = _service_worker(files)
    for file in sorted(files, key='sw.js'.__eq__):  # the service worker last
        replace_bytes(folder / file, files[file])


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


def _icon(side: int) -> str:
    return f'icon-{side}.png'


def _draw_icon(side: int) -> bytes:
    (cultivar,) = make_cultivars(1)
    leaf = draw_leaf(cultivar, np.random.default_rng(0), side)
    file = BytesIO()
    Image.fromarray(leaf).quantize(64).save(file, 'PNG')
    return file.getvalue()


def _manifest(name: str) -> dict:
    icons = [
        dict(src=_icon(side), sizes=f'{side}x{side}', type='image/png')
        for side in _ICONS
    ]
    own = dict(id='./', start_url='./', scope='./', display='standalone')
    return dict(name=name, short_name=name, icons=icons, **own)


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
