# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ONNX files in ONNX Runtime, on the CPU."""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from mmclca.utils.extras import require


def open_session(
    path: Path, threads: int = 1, sizes: Mapping[str, int] | None = None
):
    """Open an ONNX file in ONNX Runtime on the CPU.

    Args:
        path (Path): ONNX file.
        threads (int): Threads per run. Defaults to 1.
        sizes (Mapping[str, int], optional): Fixed values of symbolic sizes.
            Defaults to None, all stay symbolic.

    Returns:
        onnxruntime.InferenceSession: Session for the model.
    """
    require('onnxruntime', extra='deploy')
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors
    for name, size in (sizes or {}).items():
        options.add_free_dimension_override_by_name(name, size)
    return onnxruntime.InferenceSession(
        str(path), options, providers=['CPUExecutionProvider']
    )


def load_onnx(
    path: Path, threads: int = 1, sizes: Mapping[str, int] | None = None
) -> Callable:
    """Load an ONNX file as a function from images (B, 3, H, W) to logits.

    A file with preprocessing expects one photo (H, W, 3) instead. If the head
    stores references, the function also returns ``nearest``, the cosine
    similarity to the nearest reference, (B,).
    """
    session = open_session(path, threads, sizes)
    (entry,) = session.get_inputs()

    def logits(images: Tensor) -> Tensor | tuple[Tensor, ...]:
        arrays = session.run(None, {entry.name: images.numpy()})
        outputs = tuple(map(torch.from_numpy, arrays))
        return outputs[0] if len(outputs) == 1 else outputs

    return logits
