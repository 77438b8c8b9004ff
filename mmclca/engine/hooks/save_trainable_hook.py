# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from io import BytesIO
from pathlib import Path

import torch
from mmengine.dist import barrier, is_main_process
from mmengine.hooks import Hook
from mmengine.runner.checkpoint import weights_to_cpu

from mmclca.checkpoints.identity import digest_of
from mmclca.registry import HOOKS
from mmclca.utils.files import replace_bytes
from mmclca.utils.wrappers import inner_model


@HOOKS.register_module()
class SaveTrainableHook(Hook):
    """Save only trainable parameters: small checkpoints with a shared base.

    Parameters frozen at the start of training, for example by
    :class:`TuningScopeHook`, are written to ``base_HASH.pth`` next to the
    work dir. Tasks with the same frozen parameters share this file. Every
    tool loads a checkpoint together with its base, from the folder of the
    checkpoint or its parent.

    Raises:
        ValueError: Before training starts, if no parameter is frozen.
    """

    priority = 'LOWEST'  # after weights are loaded and EMA saves its weights

    def before_train(self, runner) -> None:
        """Write the base weights unless the file exists."""
        model = inner_model(runner.model)
        named = model.named_parameters()
        frozen = {_plain(n) for n, p in named if not p.requires_grad}
        if not frozen:
            raise ValueError(
                'SaveTrainableHook: no parameter is frozen, so there are no '
                'base weights to store; add mmclca.TuningScopeHook(scope=...) '
                'to custom_hooks, or omit --save-trainable'
            )
        own = weights_to_cpu(model.state_dict())
        base = {name: own[name] for name in own if _plain(name) in frozen}
        self.base, self.name = frozen, f'base_{digest_of(base)}.pth'
        place = Path(runner.work_dir).absolute().parent / self.name
        if is_main_process() and not place.is_file():
            content = BytesIO()
            torch.save(base, content)
            replace_bytes(place, content.getvalue())
        barrier()

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        """Remove base weights from a checkpoint and store the base name."""
        for kind in ('state_dict', 'ema_state_dict'):
            weights = checkpoint.get(kind, {})
            for name in [n for n in weights if _plain(n) in self.base]:
                del weights[name]
        checkpoint['meta']['base'] = self.name


def _plain(name: str) -> str:
    """Remove the prefix of a model wrapper from a parameter name."""
    return name.removeprefix('module.')
