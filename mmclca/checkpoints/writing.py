# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import io
from collections.abc import Sequence

import mmpretrain
import torch
from torch import Tensor

from mmclca.version import __version__


def checkpoint_bytes(
    weights: dict[str, Tensor], text: str | None, classes: Sequence[str] | None
) -> bytes:
    """A checkpoint as mmengine writes it, which needs no other file."""
    meta = dict(
        mmclca_version=__version__, mmpretrain_version=mmpretrain.__version__
    )
    if text is not None:
        meta['cfg'] = text
    if classes is not None:
        meta['dataset_meta'] = dict(classes=tuple(classes))
    buffer = io.BytesIO()
    torch.save(dict(meta=meta, state_dict=weights), buffer)
    return buffer.getvalue()
