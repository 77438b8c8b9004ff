# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cost of any model: a module of mmclca, MMPretrain or timm, or a config."""

from contextlib import suppress
from os import PathLike

from mmengine.config import Config
from timm.data import resolve_data_config
from torch import nn

from mmclca.configs import open_config
from mmclca.errors import Error
from mmclca.models import LoRAModel, reduce_tokens

from .cost import Cost, count, count_config


def cost(
    model: nn.Module | dict | str | PathLike,
    shape: tuple[int, int] | None = None,
) -> Cost:
    """Count the cost of one image: multiply-accumulates and tokens per layer.

    Args:
        model (nn.Module | dict | str | PathLike): Model of
            :func:`reduce_tokens`, timm, Transformers or MMPretrain; or a
            config, its ``model``, or its file.
        shape (tuple[int, int], optional): Image height and width in pixels.
            Defaults to None, the image size of the model.

    Returns:
        Cost: ``gmacs``, ``params``, and ``tokens`` after each layer; without
        tokens for other networks.

    Raises:
        Error: If ``model`` is neither a module nor a valid config, or
            ``shape`` is missing for a model without an image size.
    """
    if isinstance(model, str | PathLike):
        model = open_config(model)
    if isinstance(model, dict | Config):
        return count_config(model.get('model', model), shape)
    if not isinstance(model, nn.Module):
        raise Error(f'model={model!r} must be a module or a config')
    if isinstance(model, LoRAModel):
        return count(model.merged(), shape)
    with suppress(Error):  # other networks have no tokens to count
        model = reduce_tokens(model, None)
    if hasattr(model, 'backbone'):
        return count(model, shape)
    if shape is None and hasattr(model, 'pretrained_cfg'):
        shape = resolve_data_config(model=model)['input_size'][1:]
    if shape is None:
        raise Error(
            f'{type(model).__name__} has no known image size: give '
            'shape=(HEIGHT, WIDTH)'
        )
    return count(model, shape)
