# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A classifier as an ``.onnx`` file."""

import logging
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from mmclca.utils.extras import require
from mmclca.utils.files import replace_file

from .program import check_logits, classifier_program

OLDEST_OPSET = 18
INPUT, OUTPUTS = 'images', ('logits', 'nearest')


def export_onnx(
    model: nn.Module,
    size: tuple[int, int],
    path: Path,
    metadata: dict[str, str],
    opset: int = OLDEST_OPSET,
) -> float:
    """Write a classifier as an ONNX file, checked with ONNX Runtime.

    Args:
        model (nn.Module): The classifier, in evaluation mode on the CPU.
        size (tuple[int, int]): Height and width of an image.
        path (Path): The file, replaced where it exists.
        metadata (dict[str, str]): Its ``metadata_props``.
        opset (int): Version of ONNX's operators, at least 18.
            Defaults to 18.

    Returns:
        float: The largest difference of a logit from those of the model.

    Raises:
        ImportError: If onnx, onnxscript or onnxruntime is missing.
        ValueError: If logits differ; no file is left then.
    """
    require('onnx', 'onnxscript', 'onnxruntime', extra='deploy')

    def write(part: Path) -> float:
        write_onnx(model, size, part, metadata, opset)
        return check_logits(model, onnx_logits(part), size)

    return replace_file(path, write)


def write_onnx(
    model: nn.Module,
    size: tuple[int, int],
    path: Path,
    metadata: dict[str, str],
    opset: int = OLDEST_OPSET,
) -> None:
    """Write as :func:`export_onnx` does, without a check."""
    require('onnx', 'onnxscript', extra='deploy')
    _write_graph(classifier_program(model, size), path, opset)
    _finish(path, metadata)


def quantize(path: Path, out: Path) -> None:
    """Make matrix products with weights 8-bit ones (dynamic quantization).

    What weights multiply is 8-bit, too, by its range in each run.

    Args:
        path (Path): An ONNX file.
        out (Path): The file to write, which may be the same.
    """
    require('onnxruntime', extra='deploy')
    from onnxruntime.quantization import QuantType, quantize_dynamic

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it advises what :func:`_finish` has done
    quantize_dynamic(
        path,
        out,
        op_types_to_quantize=['MatMul', 'Gemm'],
        per_channel=True,
        reduce_range=True,  # 8 bits overflow where a CPU has no VNNI
        weight_type=QuantType.QInt8,
        extra_options=dict(MatMulConstBOnly=True),
    )
    root.setLevel(level)
    onnx_session(out)  # that it can be opened


def onnx_session(path: Path, threads: int = 1):
    """Open an ONNX file for the CPU.

    Args:
        path (Path): The file.
        threads (int): Threads of a run. Defaults to 1.

    Returns:
        onnxruntime.InferenceSession: The model.
    """
    require('onnxruntime', extra='deploy')
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors
    return onnxruntime.InferenceSession(
        str(path), options, providers=['CPUExecutionProvider']
    )


def onnx_logits(path: Path, threads: int = 1) -> Callable:
    """Return an ONNX file as a function of images (B, 3, H, W), to logits or,
    where the head keeps references, to these and ``nearest`` (B,)."""
    session = onnx_session(path, threads)

    def logits(images: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        found = session.run(None, {INPUT: images.numpy()})
        logits, *nearest = map(torch.from_numpy, found)
        return (logits, *nearest) if nearest else logits

    return logits


@torch.no_grad()  # as the program was traced, for the same attention
def _write_graph(program, path: Path, opset: int) -> None:
    from .onnx_operators import TRANSLATIONS  # it needs onnxscript

    with warnings.catch_warnings():
        # on its own matters: names of dimensions, opsets that it converts
        warnings.simplefilter('ignore')
        torch.onnx.export(
            program,
            f=path,
            dynamic_shapes=({0: 'batch'},),  # its name
            input_names=[INPUT],
            output_names=OUTPUTS[: len(program.graph_signature.user_outputs)],
            opset_version=opset,
            dynamo=True,
            external_data=False,
            custom_translation_table=TRANSLATIONS,
            verbose=False,
        )


def _finish(path: Path, metadata: dict[str, str]) -> None:
    """Put metadata in, and leave out what the exporter notes of its work.

    Of the shapes that it notes, those of weights mislead the quantization.
    """
    import onnx

    file = onnx.load(path)
    onnx.helper.set_model_props(file, metadata)
    file.graph.ClearField('value_info')
    for node in file.graph.node:
        node.ClearField('metadata_props')
    onnx.save(file, path)
