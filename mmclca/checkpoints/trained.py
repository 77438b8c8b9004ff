# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Weights of a model that is used, not trained: all of them, or an error."""

import torch
from mmengine.runner import load_checkpoint
from torch import nn


def forget(model: nn.Module) -> None:
    """Mark all parameters of a model, for :func:`check_complete`.

    Args:
        model (nn.Module): The model, changed in place.
    """
    with torch.no_grad():
        for param in model.parameters():
            param.fill_(torch.nan)  # stays where nothing is loaded


def check_complete(model: nn.Module, checkpoint: str) -> None:
    """Refuse a model of which not all parameters were loaded.

    A head that a checkpoint lacks is drawn at random where training starts;
    predictions of such a head would be noise.

    Args:
        model (nn.Module): The model, loaded after :func:`forget`.
        checkpoint (str): What was loaded, for the message.

    Raises:
        ValueError: If parameters are missing; names them.
    """
    named = model.named_parameters()
    missing = [name for name, param in named if param.isnan().any()]
    if missing:
        raise ValueError(
            f'{checkpoint} lacks {len(missing)} parameters of the model, or '
            'has them in another shape or as NaN: '
            f'{", ".join(missing[:4])}. Give the config that it was trained '
            'with; the number of classes is model.head.num_classes'
        )


def load_trained(model: nn.Module, checkpoint: str) -> dict:
    """Load a checkpoint that must hold all parameters of a model.

    A model whose checkpoint is refused stays as it was.

    Args:
        model (nn.Module): The model, changed in place.
        checkpoint (str): Path or URL of the weights.

    Returns:
        dict: The checkpoint.

    Raises:
        ValueError: If parameters are missing; names them.
    """
    before = {name: t.clone() for name, t in model.state_dict().items()}
    forget(model)
    try:
        loaded = load_checkpoint(model, checkpoint, map_location='cpu')
        check_complete(model, checkpoint)
    except BaseException:
        with torch.no_grad():
            for name, tensor in model.state_dict().items():
                tensor.copy_(before[name])
        raise
    return loaded
