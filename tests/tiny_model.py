# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tiny model and its files, as written by training and publishing."""

import json

import pytest
import safetensors.torch
import torch
from mmengine.config import Config
from mmengine.runner import save_checkpoint
from mmpretrain import get_model
from tiny_run import CLASSES, write_run


@pytest.fixture(scope='module')
def tiny_folder(tmp_path_factory):
    """Folder with the files of a tiny model."""
    folder = tmp_path_factory.mktemp('tiny')
    torch.manual_seed(0)
    write_tiny(folder)
    return folder


def write_tiny(folder, head='LinearClsHead', **options):
    """Write data, tiny.py, tiny.pth and tiny.safetensors into ``folder``.

    Returns the model, with every parameter moved. ``head`` is the head type.
    ``options`` change the backbone in the config; with a ``type``, they
    replace it by another backbone with 24 channels.
    """
    config = write_run(folder)
    cfg = Config.fromfile(config)
    own = {} if 'type' in options else cfg.model.backbone
    cfg.model.backbone = dict(own, **options)
    cfg.model.head.type = head
    cfg.dump(config)
    model = get_model(str(config), pretrained=False).eval()
    for parameter in model.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    state = model.state_dict()
    text = cfg.pretty_text
    meta = dict(cfg=text, dataset_meta=dict(classes=CLASSES))
    checkpoint = dict(meta=meta, state_dict=state)
    save_checkpoint(checkpoint, str(folder / 'tiny.pth'))
    safetensors.torch.save_file(
        {name: tensor.contiguous() for name, tensor in state.items()},
        folder / 'tiny.safetensors',
        metadata=dict(config=text, classes=json.dumps(CLASSES)),
    )
    return model
