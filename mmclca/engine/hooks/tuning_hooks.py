# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fine-tune selected parameters, and save only these."""

from io import BytesIO
from pathlib import Path

import torch
from mmengine.dist import barrier, is_main_process
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import BaseLoop
from mmengine.runner.checkpoint import weights_to_cpu
from torch.nn.modules.batchnorm import _BatchNorm

from mmclca.checkpoints.digests import base_file
from mmclca.errors import Error
from mmclca.models.tuning import SCOPES, part_of, tune_only
from mmclca.registry import HOOKS
from mmclca.utils.files import replace_bytes
from mmclca.utils.messages import check_choice
from mmclca.utils.wrappers import inner_model


@HOOKS.register_module()
class TuningScopeHook(Hook):
    """Fine-tune selected parameters and freeze all others.

    `Three things everyone should know about Vision Transformers`, section 4:
    fine-tuning only the attention saves memory, time, and storage per task.
    As in the authors' code, attention projections, position embeddings and
    classifier are trained, while FFN, norms, LayerScale, patch embedding and
    CLS token are frozen. Frozen parameters need neither gradient nor optimizer
    state, and frozen BatchNorm keeps its statistics. Every scope trains the
    reducer, the cache and all modules outside the backbone. The hook works
    with layer-wise learning rates, EMA, mixed precision and several
    processes.

    Args:
        scope (str): Trained part: 'attn', 'ffn' or 'norm', each with position
            embeddings; 'head', only modules outside the backbone; 'lora', the
            parameters added by :class:`LoRAModel`; 'full', all parameters.
            Defaults to 'attn'.

    Raises:
        Error: If the scope is unknown; before training starts, if the
            model lacks parameters in this scope.
    """

    priority = 'VERY_HIGH'  # run before EMA copies the model

    def __init__(self, scope: str = 'attn'):
        check_choice(SCOPES, scope=scope)
        self.scope = scope

    def before_run(self, runner) -> None:
        """Freeze parameters before weights are loaded."""
        if not isinstance(runner._train_loop, BaseLoop):
            return
        model = inner_model(runner.model)
        train, total = tune_only(model, self.scope)
        runner.logger.info(
            f'scope {self.scope!r}: training {train:,} of {total:,} '
            f'parameters ({train / total:.1%})'
        )
        self.still = {
            path: module
            for path, module in model.named_modules()
            if isinstance(module, _BatchNorm)
            and part_of(path, module) not in SCOPES[self.scope]
        }
        if is_model_wrapper(runner.model):  # the old one expects all gradients
            wrapper = runner.cfg.get('model_wrapper_cfg')
            runner.model = runner.wrap_model(wrapper, model)

    def before_train_iter(self, runner, batch_idx, data_batch=None) -> None:
        """Freeze BatchNorm statistics outside the scope."""
        for module in self.still.values():
            module.eval()


@HOOKS.register_module()
class SaveTrainableHook(Hook):
    """Save only trainable parameters: small checkpoints with a shared base.

    Parameters frozen at the start of training, for example by
    :class:`TuningScopeHook`, are written to ``base_HASH.pth`` next to the
    work dir. Tasks with the same frozen parameters share this file. Every
    tool loads a checkpoint together with its base, from the folder of the
    checkpoint or its parent.

    Raises:
        Error: Before training starts, if no parameter is frozen.
    """

    priority = 'LOWEST'  # after weights are loaded and EMA saves its weights

    def before_train(self, runner) -> None:
        """Write the base weights unless the file exists."""
        model = inner_model(runner.model)
        named = model.named_parameters()
        frozen = {_plain(n) for n, p in named if not p.requires_grad}
        if not frozen:
            raise Error(
                'SaveTrainableHook: no parameter is frozen, so there are no '
                'base weights to store; add mmclca.TuningScopeHook(scope=...) '
                'to custom_hooks, or omit `save_trainable`'
            )
        weights = weights_to_cpu(model.state_dict())
        base = {
            name: weights[name] for name in weights if _plain(name) in frozen
        }
        self.base, self.name = frozen, base_file(base)
        path = Path(runner.work_dir).absolute().parent / self.name
        if is_main_process() and not path.is_file():
            content = BytesIO()
            torch.save(base, content)
            replace_bytes(path, content.getvalue())
        barrier()

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        """Remove base weights from a checkpoint and store the base name."""
        for key in ('state_dict', 'ema_state_dict'):
            weights = checkpoint.get(key, {})
            for name in [n for n in weights if _plain(n) in self.base]:
                del weights[name]
        checkpoint['meta']['base'] = self.name


def _plain(name: str) -> str:
    """Remove the prefix of a model wrapper from a parameter name."""
    return name.removeprefix('module.')
