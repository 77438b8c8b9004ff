# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import mmclca.registry  # noqa: F401, quiet, so before mmpretrain

from .onnx_file import (
    export_onnx,
    onnx_logits,
    onnx_session,
    quantize,
    write_onnx,
)
from .photo_input import add_preprocessing, check_photo
from .preprocessing import Preprocessing, metadata_of, preprocessing_of
from .program import export_pt2
from .small_weights import store_in_8_bits
from .web_app import check_web_runtime, write_web_app

__all__ = [
    'Preprocessing',
    'add_preprocessing',
    'check_photo',
    'check_web_runtime',
    'export_onnx',
    'export_pt2',
    'metadata_of',
    'onnx_logits',
    'onnx_session',
    'preprocessing_of',
    'quantize',
    'store_in_8_bits',
    'write_onnx',
    'write_web_app',
]
