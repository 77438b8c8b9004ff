# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tiny model with a checkpoint for the export tools."""

from mmengine.runner import save_checkpoint
from mmpretrain import get_model
from tiny_run import CLASSES, ROOT, write_run

EXPORT = ROOT / 'tools/deployment/export.py'
INFER = ROOT / 'tools/deployment/infer_onnx.py'


def write_model(folder):
    """Write data, config and checkpoint; return both paths and the model."""
    config = write_run(folder)
    model = get_model(str(config), pretrained=False).eval()
    meta = dict(dataset_meta=dict(classes=CLASSES))
    state = dict(meta=meta, state_dict=model.state_dict())
    save_checkpoint(state, str(folder / 'tiny.pth'))
    return config, folder / 'tiny.pth', model
