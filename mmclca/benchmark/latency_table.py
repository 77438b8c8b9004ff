# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Latencies measured on this machine, kept for later calls."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path

import torch

from mmclca.checkpoints.gate.json_parsing import load_json_object, parse_record
from mmclca.errors import Error
from mmclca.utils.files import replace_text
from mmclca.utils.provenance import machine_name, versions

from .steps import Name
from .timing import ROUNDS, time_models


@dataclass(frozen=True)
class LatencyTable:
    """Milliseconds per photo, by model.

    A table of another machine, number of threads or version is ignored.

    Args:
        origin (dict[str, str]): Machine, runtime and versions.
        milliseconds (dict[str, float]): Latency by the hash of a model, see
            :func:`hash_model`.
    """

    origin: dict[str, str]
    milliseconds: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, runtime: str, device: str) -> 'LatencyTable':
        """Read the table of a runtime; it is empty if there is none."""
        machine = machine_name('cpu' if runtime == 'onnx' else device)
        origin = dict(versions(), machine=machine, runtime=runtime)
        if runtime == 'onnx':
            import onnxruntime

            origin['onnxruntime'] = onnxruntime.__version__
        table = cls(origin)
        with suppress(OSError, Error):  # missing or damaged
            content = load_json_object(table.path.read_bytes())
            stored = parse_record(cls, content)
            if stored.origin == origin:
                return stored
        return table

    @property
    def path(self) -> Path:
        """File next to the weights that torch downloads."""
        name = f'latency_{self.origin["runtime"]}.json'
        return Path(torch.hub.get_dir(), 'mmclca', name)

    def write(self) -> None:
        """Replace the file, unless the folder cannot be written."""
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(self.path, json.dumps(asdict(self), indent=1))

    def look_up(
        self,
        hashes: Mapping[Name, str],
        measure: Callable[[list[Name]], tuple[dict[Name, float], str]],
    ) -> tuple[dict[Name, float], str]:
        """Return latencies by name; measure those that are unknown.

        Latencies measured on a busy machine are not kept.

        Args:
            hashes (Mapping[Hashable, str]): Hash by name.
            measure (Callable): Function from names to milliseconds by name,
                and a note if the machine is busy.

        Returns:
            tuple[dict[Hashable, float], str]: Milliseconds, and the note.
        """
        unknown = [x for x in hashes if hashes[x] not in self.milliseconds]
        times, busy = measure(unknown) if unknown else ({}, '')
        if times and not busy:
            hashed = {hashes[name]: time for name, time in times.items()}
            self.milliseconds.update(hashed)
            self.write()
        kept = {
            name: self.milliseconds[key]
            for name, key in hashes.items()
            if name not in unknown
        }
        return kept | times, busy


def hash_model(config: Mapping) -> str:
    """Hash what the latency depends on: all but classes and weights."""
    parts = {
        name: {k: v for k, v in part.items() if k != 'num_classes'}
        for name, part in config.items()
        if isinstance(part, Mapping) and name != 'data_preprocessor'
    }
    content = json.dumps(parts, sort_keys=True, default=str)
    return sha256(content.encode()).hexdigest()


def look_up_or_time(
    models: Mapping[Name, dict],
    runtime: str,
    device: str,
    rounds: int = ROUNDS,
) -> tuple[dict[Name, float], str]:
    """Return the latencies of models, and measure those that are unknown.

    Args:
        models (Mapping[Hashable, dict]): Classifier configs by name.
        runtime (str): A key in ``RUNTIMES``.
        device (str): Device.
        rounds (int): Passes per model. Defaults to ``ROUNDS``.

    Returns:
        tuple[dict[Hashable, float], str]: As from
        :func:`mmclca.benchmark.timing.time_models`.
    """
    hashes = {name: hash_model(config) for name, config in models.items()}

    def measure(names: list[Name]) -> tuple[dict[Name, float], str]:
        unknown = {name: models[name] for name in names}
        return time_models(unknown, runtime, device, rounds)

    return LatencyTable.read(runtime, device).look_up(hashes, measure)
