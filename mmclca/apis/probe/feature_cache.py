# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Features on disk, so that no image goes through a model twice."""

import json
from hashlib import sha256
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mmclca.utils.files import read_bytes, replace_file


class FeatureCache:
    """Features of one model by the contents of image files.

    A file of the folder holds those of a batch and is written in one step:
    what was interrupted goes on from there, and several processes may use
    one folder.

    Args:
        folder (str | Path, optional): Where to keep them, in a folder of
            each model. None: in memory alone.
        model (str): What identifies the model, see
            :func:`mmclca.evaluation.open_set.digest`.

    Raises:
        ValueError: If features in the folder are not finite.
    """

    def __init__(self, folder: str | Path | None, model: str):
        self._folder = None if folder is None else Path(folder, model)
        self._found: dict[str, Tensor] = {}
        if self._folder is not None:
            for part in sorted(self._folder.glob('*.safetensors')):
                self._read(part)

    def __contains__(self, digest: str) -> bool:
        return digest in self._found

    def __getitem__(self, digest: str) -> Tensor:
        return self._found[digest]

    def add(self, digests: list[str], features: Tensor) -> None:
        """Keep the features (N, D) of image files, see ``digest_of_file``."""
        self._found.update(zip(digests, features, strict=True))
        if self._folder is None or not digests:
            return
        facts = dict(digests=json.dumps(digests))
        name = sha256(facts['digests'].encode()).hexdigest()[:16]
        replace_file(
            self._folder / f'{name}.safetensors',
            lambda part: save_file(dict(features=features), part, facts),
            sync=False,
        )

    def _read(self, part: Path) -> None:
        try:
            with safe_open(part, 'pt') as file:
                digests = json.loads(file.metadata()['digests'])
                features = file.get_tensor('features')
        except (KeyError, SafetensorError, TypeError, ValueError):
            return  # no part of ours: its images go through the model
        if not features.isfinite().all():
            raise ValueError(f'{part} holds no finite numbers: remove it')
        self._found.update(zip(digests, features, strict=True))


def digest_of_file(path: str) -> str | None:
    """SHA-256 of a file, None where it cannot be read."""
    try:
        return sha256(read_bytes(path)).hexdigest()
    except OSError:
        return None
