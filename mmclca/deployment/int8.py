# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Quantization of an ONNX file to 8 bits."""

import logging
from functools import partial
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from mmclca.utils.extras import require
from mmclca.utils.files import replace_file

from .onnx_file import OLDEST_OPSET, export_source
from .onnx_runtime import open_session
from .photo_input import add_photo_input
from .small_weights import store_convolutions_in_8_bits
from .source import Exported, ExportSource


def write(
    source: ExportSource,
    out: Path,
    *,
    input: str = 'photo',
    opset: int = OLDEST_OPSET,
    photos: Path | None = None,
) -> Exported:
    """Write the format ``int8``: a quantized ONNX file."""
    with TemporaryDirectory() as folder:
        full, quantized = Path(folder, '32.onnx'), Path(folder, '8.onnx')
        difference = export_source(source, full, opset)
        quantize(full, quantized)
        comparison = source.compare(full, quantized, photos)
        if input == 'photo':
            add_photo_input(source, full, quantized)
        replace_file(out, partial(copyfile, quantized))
    return Exported([out], difference, comparison)


def quantize(path: Path, out: Path) -> None:
    """Quantize weights to int8.

    Matrix products are computed in int8 (dynamic quantization): inputs are
    quantized at run time, scaled by the range of their values. Convolutions
    are computed in float32.

    Args:
        path (Path): ONNX file.
        out (Path): Output file, which may be the same.
    """
    require('onnxruntime', extra='deploy')
    from onnxruntime.quantization import QuantType, quantize_dynamic

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # hide advice on shapes, see _add_metadata
    try:
        quantize_dynamic(
            path,
            out,
            op_types_to_quantize=['MatMul', 'Gemm'],
            per_channel=True,
            reduce_range=True,  # 8 bits overflow on CPUs without VNNI
            weight_type=QuantType.QInt8,
            extra_options=dict(MatMulConstBOnly=True),
        )
    finally:
        root.setLevel(level)
    store_convolutions_in_8_bits(out)
    open_session(out)  # raise if the file cannot be opened
