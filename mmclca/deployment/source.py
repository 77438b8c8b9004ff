# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Input and result of an export format."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config
from torch import nn

from mmclca.languages import Note

from .preprocessing import Preprocessing


@dataclass(frozen=True)
class Rate:
    """Measured rate, 0 to 1.

    Args:
        value (float): The rate.
        low (float, optional): Lower bound of its 95% interval.
        high (float, optional): Upper bound.
    """

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ModelTitle:
    """Name of a model, and measured figures.

    Args:
        name (str): Name.
        accuracy (Rate, optional): Accuracy on new photos. Defaults to None:
            unknown.
        validity (str): Photos for which it holds, from ``find_validity`` in
            ``mmclca.fitting.record_description``. Defaults to ''.
        false_alarms (Rate, optional): Rate of photos of a known class that
            are flagged as unknown. Defaults to None: unknown.
    """

    name: str
    accuracy: Rate | None = None
    validity: str = ''
    false_alarms: Rate | None = None


@dataclass(frozen=True)
class QuantizedComparison:
    """Comparison of an 8-bit with a 32-bit file.

    Args:
        latency (str): Latency of both, in words.
        label (str): 'Accuracy', or 'Agreement' without held-out photos.
        agreement (str): Accuracy or agreement of both, in words.
        notes (tuple[Note, ...]): Label and agreement, for other languages.
            Defaults to ().
    """

    latency: str
    label: str
    agreement: str
    notes: tuple[Note, ...] = ()

    @classmethod
    def from_notes(
        cls, latency: str, label: Note, agreement: Note
    ) -> 'QuantizedComparison':
        """Write label and agreement in the current language."""
        notes = label, agreement
        return cls(latency, str(label), str(agreement), notes)


@dataclass(frozen=True)
class ExportSource:
    """Model to export.

    Args:
        model (nn.Module): Classifier in evaluation mode on the CPU.
        config (Config): Its config, with a ``test_dataloader``.
        preprocessing (Preprocessing): Steps from a photo to its input.
        metadata (dict[str, str]): Facts to store in the file, see
            :func:`.make_metadata`.
        describe (Callable): Returns the :class:`ModelTitle`.
        find_class_photos (Callable): Returns the path of one photo per class.
        compare (Callable): Compares a 32-bit with an 8-bit ONNX file for
            normalized images, on the photos in a folder, if any.
    """

    model: nn.Module
    config: Config
    preprocessing: Preprocessing
    metadata: dict[str, str]
    describe: Callable[[], ModelTitle]
    find_class_photos: Callable[[], list[Path]]
    compare: Callable[[Path, Path, Path | None], QuantizedComparison]


@dataclass(frozen=True)
class Exported:
    """Result of an export.

    Args:
        files (list[Path]): Written files.
        difference (float): Largest absolute difference from PyTorch logits,
            before quantization.
        comparison (QuantizedComparison | None): Comparison of an 8-bit with
            the 32-bit file. Defaults to None, without an 8-bit file.
    """

    files: list[Path]
    difference: float
    comparison: QuantizedComparison | None = None
