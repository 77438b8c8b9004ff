# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Export of a model folder or checkpoint in any format."""

import json
from dataclasses import asdict
from glob import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.answers import read_coarse_classes
from mmclca.benchmark import compare_quantized
from mmclca.checkpoints.model_folder import ModelFolder, is_fitted
from mmclca.deployment import (
    Exported,
    ExportSource,
    ModelTitle,
    QuantizedComparison,
    Rate,
    describe_sets,
    make_metadata,
    read_preprocessing,
)
from mmclca.errors import Error
from mmclca.evaluation.calibration_file import read_calibration
from mmclca.export_formats import ExportFormat
from mmclca.utils.files import remove_partial_files

from .class_photos import find_class_photos
from .fit_folder import FitFolder
from .plants import read_dependence
from .record_description import find_validity


def export_model(
    inferencer: TokenReductionInferencer,
    checkpoint: str,
    export_format: ExportFormat,
    out: Path,
    settings: dict[str, Any],
) -> Exported:
    """Write a model in a format.

    Args:
        inferencer (TokenReductionInferencer): The model, on the CPU.
        checkpoint (str): Path of the model folder or checkpoint.
        export_format (ExportFormat): An entry of ``FORMATS``.
        out (Path): File or folder to write.
        settings (dict): Values of the format's options.

    Returns:
        Exported: Written files, and how they compare with PyTorch.

    Raises:
        ImportError: If a package is missing.
        Error: If the model cannot be exported, or its outputs differ.
    """
    model = inferencer.model.eval()
    preprocessing = read_preprocessing(model._config, model)
    threshold = None
    if inferencer.threshold is not None:
        threshold = asdict(inferencer.threshold)

    def compare(
        full: Path, quantized: Path, photos: Path | None
    ) -> QuantizedComparison:
        return compare_quantized(
            inferencer, full, quantized, preprocessing.size, checkpoint, photos
        )

    source = ExportSource(
        model=model,
        config=model._config,
        preprocessing=preprocessing,
        metadata=make_metadata(
            model._config,
            model,
            preprocessing,
            inferencer.classes,
            threshold,
            _describe_sets(checkpoint, len(inferencer.classes)),
        )
        | dict(dependence=json.dumps(read_dependence(checkpoint).value)),
        describe=lambda: describe_model(checkpoint),
        find_class_photos=lambda: find_class_photos(
            checkpoint, inferencer.classes
        ),
        compare=compare,
    )
    if not export_format.is_folder:
        remove_partial_files(out.parent, escape(out.stem), escape(out.suffix))
    module = import_module(f'mmclca.deployment.{export_format.module}')
    return module.write(source, out, **settings)


def _describe_sets(checkpoint: str, num_classes: int) -> dict | None:
    """Describe the prediction sets of a model folder, if it has any."""
    if not is_fitted(checkpoint):
        return None
    folder = ModelFolder.open(checkpoint)
    try:
        calibration = read_calibration(folder, num_classes)
    except Error:  # of an earlier version, damaged or incomplete
        return None
    return describe_sets(calibration, read_coarse_classes(folder))


def describe_model(checkpoint: str) -> ModelTitle:
    """Return a model folder's name and figures, or a file's name."""
    path = Path(checkpoint).resolve()
    if not is_fitted(path):
        return ModelTitle(path.name if path.is_dir() else path.stem)
    files = FitFolder.open(path)
    record = files.read_complete()
    best, threshold = record.best, record.threshold
    accuracy = false_alarms = None
    if best.accuracy is not None and record.is_representative:
        accuracy = Rate(best.accuracy, best.low, best.high)
    if threshold and threshold.false_alarms is not None:
        false_alarms = Rate(
            threshold.false_alarms, threshold.low, threshold.high
        )
    return ModelTitle(
        files.name_model(record),
        accuracy,
        find_validity(record) if accuracy else '',
        false_alarms,
    )
