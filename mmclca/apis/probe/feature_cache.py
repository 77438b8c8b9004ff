# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Features on disk, so that no image goes through a model twice."""

import json
from hashlib import sha256
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mmclca.utils.atomic_write import replace_file
from mmclca.utils.reading import read_bytes

PART = 256  # images a file


class FeatureCache:
    """Features of one model by the contents of image files.

    Each file of the folder holds up to 256 of them and is written in one
    step: what was interrupted goes on from there, and several processes may
    use one folder.

    Args:
        folder (str | Path, optional): Where to keep them, in a folder of
            each model. None: in memory alone.
        model (str): What tells the model from others, see
            :func:`mmclca.apis.rejection.digest`.

    Raises:
        ValueError: If features in the folder are not finite.
    """

    def __init__(self, folder: str | Path | None, model: str):
        self._folder = None if folder is None else Path(folder, model)
        self._found: dict[str, Tensor] = {}
        self._new: list[str] = []
        if self._folder is not None:
            for part in sorted(self._folder.glob('*.safetensors')):
                self._read(part)

    def __contains__(self, digest: str) -> bool:
        return digest in self._found

    def __getitem__(self, digest: str) -> Tensor:
        return self._found[digest]

    def add(self, digests: list[str], features: Tensor) -> None:
        """Keep features; full parts are written.

        Args:
            digests (list[str]): Of the image files, see
                :func:`digest_of_file`.
            features (Tensor): (N, D).
        """
        self._found.update(zip(digests, features, strict=True))
        self._new += digests
        while len(self._new) >= PART:
            self._write(self._new[:PART])
            del self._new[:PART]

    def flush(self) -> None:
        """Write what is not yet written."""
        if self._new:
            self._write(self._new)
            self._new = []

    def _write(self, digests: list[str]) -> None:
        if self._folder is None:
            return
        features = torch.stack([self._found[digest] for digest in digests])
        facts = dict(digests=json.dumps(digests))
        name = sha256(facts['digests'].encode()).hexdigest()[:16]
        replace_file(
            self._folder / f'{name}.safetensors',
            lambda part: save_file(dict(features=features), part, facts),
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
