# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fetch onnxruntime-web, which runs models in web browsers, with npm.

``python tools/dev/fetch_web_runtime.py [FOLDER]`` stores its files in the
package, from where ``export --web`` copies them. Needs no other package.
"""

import base64
import hashlib
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

NAME, VERSION = 'onnxruntime-web', '1.30.0'
INTEGRITY = (
    'sha512-q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02V'
    'b7QmRMDs1SigqR4CXAfKYQ=='
)
FILES = 'ort.wasm.bundle.min.mjs', 'ort-wasm-simd-threaded.wasm'
MARK = 'version.txt'  # written last
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'mmclca/deployment/web/runtime'


def fetch() -> bytes:
    """Return the npm package; raise if it is not the pinned one."""
    with TemporaryDirectory() as folder:
        options = '--silent', '--ignore-scripts', '--fetch-retries=1'
        command = ['npm', 'pack', f'{NAME}@{VERSION}', *options]
        try:
            subprocess.run(
                command,
                cwd=folder,
                check=True,
                timeout=300,
                capture_output=True,
            )
        except FileNotFoundError:
            raise OSError('npm is missing, install Node.js') from None
        except subprocess.SubprocessError:
            raise OSError('npm failed, check the network') from None
        (file,) = Path(folder).iterdir()
        content = file.read_bytes()
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    if f'sha512-{digest}' != INTEGRITY:
        raise OSError(f'expected {INTEGRITY}, found sha512-{digest}')
    return content


def store(content: bytes, folder: Path) -> None:
    """Replace the files in a folder; the mark shows that all are there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).unlink(missing_ok=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for name in FILES:
            file = archive.extractfile(f'package/dist/{name}')
            (folder / name).write_bytes(file.read())
    part = folder / f'.{MARK}.{os.getpid()}'
    part.write_text(f'{NAME} {VERSION} {INTEGRITY}\n', 'utf-8')
    part.replace(folder / MARK)


def is_current(folder: Path) -> bool:
    """Return whether a folder has the files of this version."""
    mark = folder / MARK
    return mark.is_file() and INTEGRITY in mark.read_text('utf-8')


def main() -> None:
    """Fetch the files unless they are there; exit with one line on failure."""
    folder = Path(*sys.argv[1:] or [FOLDER])
    if is_current(folder):
        return
    try:
        store(fetch(), folder)
    except OSError as error:
        sys.exit(
            f'{NAME} {VERSION} was not fetched: {error}. Only export --web '
            'needs it: python tools/dev/fetch_web_runtime.py'
        )
    print(f'Saved {NAME} {VERSION} in {folder}')


if __name__ == '__main__':
    main()
