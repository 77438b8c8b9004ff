# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

from .int8 import quantize
from .onnx_file import (
    export_onnx,
    write_layer_to_time,
    write_onnx,
    write_onnx_to_time,
)
from .onnx_runtime import load_onnx, open_session
from .photo_input import add_preprocessing, check_photo
from .prediction_sets import describe_sets
from .preprocessing import Preprocessing, make_metadata, read_preprocessing
from .pt2 import export_pt2
from .small_weights import store_in_8_bits
from .source import (
    Exported,
    ExportSource,
    ModelTitle,
    QuantizedComparison,
    Rate,
)
from .web_app import check_web_runtime, write_web_app

__all__ = [
    'ExportSource',
    'Exported',
    'ModelTitle',
    'Preprocessing',
    'QuantizedComparison',
    'Rate',
    'add_preprocessing',
    'check_photo',
    'check_web_runtime',
    'describe_sets',
    'export_onnx',
    'export_pt2',
    'load_onnx',
    'make_metadata',
    'open_session',
    'quantize',
    'read_preprocessing',
    'store_in_8_bits',
    'write_layer_to_time',
    'write_onnx',
    'write_onnx_to_time',
    'write_web_app',
]
