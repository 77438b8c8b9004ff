# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .checks import check_logits, noise
from .metadata import metadata_of
from .onnx_file import (
    export_onnx,
    onnx_logits,
    onnx_session,
    quantize,
    write_onnx,
)
from .preprocessing import Preprocessing, preprocessing_of
from .program import classifier_program, export_pt2

__all__ = [
    'Preprocessing',
    'check_logits',
    'classifier_program',
    'export_onnx',
    'export_pt2',
    'metadata_of',
    'noise',
    'onnx_logits',
    'onnx_session',
    'preprocessing_of',
    'quantize',
    'write_onnx',
]
