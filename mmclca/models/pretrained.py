# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Initialize models from checkpoints, without running code in them."""

from pathlib import Path
from typing import Any

from mmengine.config import ConfigDict
from torch import nn

from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.load import load
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.errors import Error
from mmclca.registry import WEIGHT_INITIALIZERS
from mmclca.utils.messages import join_first

NAMES = ('Pretrained', 'mmengine.Pretrained', 'mmclca.Pretrained')


@WEIGHT_INITIALIZERS.register_module()
class Pretrained:
    """Initialize a model or a part of it from a checkpoint.

    Like mmengine's ``Pretrained``, but with :func:`.load.load`: no code in
    the file is run, weights of releases are renamed, and a file of another
    network is refused. The classifiers and backbones of this package use it
    for ``init_cfg=dict(type='Pretrained', checkpoint=...)``, and so do all
    models in commands; set ``_scope_='mmclca'`` for other models in Python.

    Args:
        checkpoint (str): See :func:`.opening.open_checkpoint`.
        prefix (str, optional): Prefix of the parameters of a part in the
            checkpoint, such as 'backbone'. Defaults to None: the checkpoint
            of a whole model, or one that is renamed.
        map_location (str): See ``torch.load``. Defaults to 'cpu'.

    Raises:
        Error: If ``checkpoint`` is not a path or URL.
    """

    def __init__(
        self,
        checkpoint: str,
        prefix: str | None = None,
        map_location: str = 'cpu',
    ):
        if not isinstance(checkpoint, str | Path):
            raise Error(
                f'checkpoint={checkpoint!r} of Pretrained must be a path or '
                'URL (text)'
            )
        self.checkpoint, self.prefix = checkpoint, prefix
        self.map_location = map_location

    def __call__(self, module: nn.Module) -> None:
        """Load the checkpoint into a module.

        Raises:
            CheckpointError: If the module differs, or ``prefix`` is unknown.
        """
        checkpoint = open_checkpoint(self.checkpoint, self.map_location)
        if self.prefix is not None:
            checkpoint = _select_part(checkpoint, self.prefix)
        load(module, checkpoint, strict=False)


def _select_part(checkpoint: Checkpoint, prefix: str) -> Checkpoint:
    """Return the weights under a prefix, without the prefix."""
    start = f'{prefix.rstrip(".")}.'
    weights = {
        name.removeprefix(start): value
        for name, value in checkpoint.weights.items()
        if name.startswith(start)
    }
    if not weights:
        raise CheckpointError(
            f'{checkpoint.name} has no parameters with prefix={prefix!r}; its '
            f'first keys are {join_first(checkpoint.file_names, 6) or "none"}'
        )
    return Checkpoint(dict(checkpoint, state_dict=weights), checkpoint.name)


def use_safe_initializer(settings: Any) -> Any:
    """Return settings in which ``Pretrained`` is that of this package.

    Args:
        settings (object): Config of a model, or of an initializer, or a list
            of them. It is not changed.
    """
    if isinstance(settings, list | tuple):
        return type(settings)(map(use_safe_initializer, settings))
    if not isinstance(settings, dict):
        return settings
    items = settings.items()
    copy = {key: use_safe_initializer(value) for key, value in items}
    if copy.get('type') in NAMES and 'checkpoint' in copy:
        # models of mmengine compare the type with this name
        copy.update(type='Pretrained', _scope_='mmclca')
    if copy.get('pretrained') and 'backbone' in copy:
        copy['init_cfg'] = dict(
            type='Pretrained',
            _scope_='mmclca',
            checkpoint=copy.pop('pretrained'),
        )
    return ConfigDict(copy) if isinstance(settings, ConfigDict) else copy
