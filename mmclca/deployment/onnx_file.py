# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Export of a classifier to an ``.onnx`` file."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.nn.modules.batchnorm import _BatchNorm

from mmclca.errors import Error
from mmclca.models import Reducible
from mmclca.utils.extras import require
from mmclca.utils.files import replace_file
from mmclca.utils.messages import check_integer
from mmclca.utils.torch_versions import EXPORTS_LOOPS, require_torch

from .onnx_runtime import load_onnx
from .photo_input import add_photo_input
from .program import check_logits, classifier_program
from .source import Exported, ExportSource

OLDEST_OPSET = 18
NEWEST_OPSET = 22  # ONNX Runtime fails on the Attention operator of 23
INPUT, OUTPUTS = 'images', ('logits', 'nearest')
TOKENS = 'tokens'  # size of the input of an exported layer
LEAST_TOKENS = 4


def write(
    source: ExportSource,
    out: Path,
    *,
    input: str = 'photo',
    opset: int = OLDEST_OPSET,
) -> Exported:
    """Write the format ``onnx``: a file whose input is a photo or a batch."""
    with TemporaryDirectory() as folder:
        file = Path(folder, 'model.onnx')
        difference = export_source(source, file, opset)
        if input == 'photo':
            add_photo_input(source, file)
        replace_file(out, partial(copyfile, file))
    return Exported([out], difference)


def export_source(
    source: ExportSource, path: Path, opset: int = OLDEST_OPSET
) -> float:
    """Write a 32-bit file for batches, see :func:`export_onnx`."""
    size, metadata = source.preprocessing.size, source.metadata
    return export_onnx(source.model, path, size, metadata, opset)


def export_onnx(
    model: nn.Module,
    path: Path | str,
    size: tuple[int, int] | None = None,
    metadata: dict[str, str] | None = None,
    opset: int = OLDEST_OPSET,
) -> float:
    """Write a classifier to an ONNX file and check it with ONNX Runtime.

    The file maps ``images`` (B, 3, H, W), normalized, to ``logits``, for any
    batch size B. It is computed in float32 and in evaluation mode; the model
    itself does not change.

    Args:
        model (nn.Module): Classifier: a config model, or the result of
            :func:`mmclca.models.reduced.reduce_tokens`.
        path (Path | str): Output file; an existing file is replaced.
        size (tuple[int, int], optional): Image height and width. Defaults to
            None, the size of the model.
        metadata (dict[str, str], optional): ``metadata_props`` in the file.
            Defaults to None, empty.
        opset (int): ONNX operator version, 18 to 22. Defaults to 18.

    Returns:
        float: Largest absolute difference between exported and PyTorch
        logits, at batch sizes 1 and 3.

    Raises:
        ImportError: If onnx, onnxscript or onnxruntime is missing, or torch
            is too old: 2.8 is needed, and 2.11 for ATC.
        Error: If the image size is unknown, the opset is not
            supported, or the logits differ. No file is written then.
    """
    require('onnx', 'onnxscript', 'onnxruntime', extra='deploy')
    check_integer(OLDEST_OPSET, NEWEST_OPSET, opset=opset)
    size = image_size(model) if size is None else size
    model = deepcopy(model).cpu().float().eval()

    def write(part: Path) -> float:
        write_onnx(model, size, part, metadata or {}, opset)
        return check_logits(model, load_onnx(part), size)

    return replace_file(Path(path), write)


def image_size(model: nn.Module) -> tuple[int, int]:
    """Return the image height and width of a model with token reduction.

    Raises:
        Error: If the model does not have one.
    """
    for part in model.modules():
        if isinstance(part, Reducible):
            height, width = part.img_size
            return height, width
    raise Error(
        f'{type(model).__name__} has no image size; pass '
        'size=(height, width), for example (224, 224)'
    )


def write_onnx(
    model: nn.Module,
    size: tuple[int, int],
    path: Path,
    metadata: dict[str, str],
    opset: int = OLDEST_OPSET,
) -> None:
    """Write a classifier to an ONNX file without a check."""
    require('onnx', 'onnxscript', extra='deploy')
    program = classifier_program(model, size)
    shapes = ({0: 'batch'},)  # dimension name
    _write_graph(program, path, opset_version=opset, dynamic_shapes=shapes)
    _add_metadata(path, metadata)


def write_onnx_to_time(
    model: nn.Module, size: tuple[int, int], path: Path, batch: int
) -> None:
    """Write a classifier to an ONNX file for one batch size, to time it.

    It takes a third of the time of :func:`write_onnx`: no size is symbolic,
    and the graph is left to the optimizer of ONNX Runtime, which does not
    merge batch norms.
    """
    require('onnx', 'onnxscript', extra='deploy')
    program = classifier_program(model, size, batch)
    has_batch_norm = any(isinstance(x, _BatchNorm) for x in model.modules())
    _write_graph(
        program, path, opset_version=OLDEST_OPSET, optimize=has_batch_norm
    )


def write_layer_to_time(layer: nn.Module, tokens: Tensor, path: Path) -> None:
    """Write a transformer layer to an ONNX file for any number of tokens.

    Args:
        layer (nn.Module): Module from tokens (B, N, C) to one or two tensors.
        tokens (Tensor): Example tokens (B, N, C). In the file, the size N is
            called ``TOKENS``; it has to be at least ``LEAST_TOKENS``.
        path (Path): Output file.
    """
    require('onnx', 'onnxscript', extra='deploy')
    dims = {1: Dim(TOKENS, min=LEAST_TOKENS)}
    with torch.no_grad():
        program = torch.export.export(layer, (tokens,), dynamic_shapes=(dims,))
    _write_graph(program, path, opset_version=OLDEST_OPSET, optimize=False)


@torch.no_grad()  # as in the traced program, for the same attention
def _write_graph(program: ExportedProgram, path: Path, **options: Any) -> None:
    """Write a ``torch.export`` program to an ONNX file."""
    from .onnx_operators import TRANSLATIONS  # needs onnxscript

    if has_loops(program):
        require_torch(
            EXPORTS_LOOPS,
            'ONNX export of ATC',
            'other methods such as ToMe, and the format pt2, work without it',
        )
    options |= dict(
        f=path,
        input_names=[INPUT],
        output_names=OUTPUTS[: len(program.graph_signature.user_outputs)],
        dynamo=True,
        external_data=False,
        # declared as functions, but keys are operators
        custom_translation_table=TRANSLATIONS,
        verbose=False,
    )
    with _without_notes():
        try:
            torch.onnx.export(program, **options)
        except torch.onnx.OnnxExporterError as error:
            cause = error.__cause__ or error
            reason = str(cause).strip().partition('\n')[0]
            raise Error(
                f'torch {torch.__version__} cannot export this model to ONNX '
                f'({reason}); use the format pt2'
            ) from error


@contextmanager
def _without_notes() -> Iterator[None]:
    """Hide notes of the exporter on its own dimension names and opsets."""
    logger = logging.getLogger('torch.onnx')
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        logger.setLevel(level)


def has_loops(program: ExportedProgram) -> bool:
    """Return whether a program repeats a part until a condition is met."""
    return any(
        node.target is torch.ops.higher_order.while_loop
        for node in program.graph.nodes
    )


def _add_metadata(path: Path, metadata: dict[str, str]) -> None:
    """Add metadata and remove exporter notes from an ONNX file.

    The noted weight shapes mislead the quantization.
    """
    import onnx

    file = onnx.load(path)
    onnx.helper.set_model_props(file, metadata)
    file.graph.ClearField('value_info')
    for node in file.graph.node:
        node.ClearField('metadata_props')
    onnx.save(file, path)
