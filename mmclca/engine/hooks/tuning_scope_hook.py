# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import BaseLoop
from torch.nn.modules.batchnorm import _BatchNorm

from mmclca.models.tuning import SCOPES, part_of, tune_only
from mmclca.registry import HOOKS
from mmclca.utils.messages import one_of
from mmclca.utils.wrappers import inner_model


@HOOKS.register_module()
class TuningScopeHook(Hook):
    """Train a part of a model, and leave all else as it is, bit by bit.

    `Three things everyone should know about Vision Transformers`, section 4:
    to fine-tune the attention alone saves memory, time, and storage for each
    task. As in its public code, projections of the attention, positions and
    classifier train, while FFN, norms, LayerScale, patch embedding and CLS
    token are frozen: they have no gradient and no state of the optimizer, and
    BatchNorm keeps its statistics. A reducer, a cache, and all outside of
    the backbone train in every scope. With layer-wise learning rates, EMA,
    mixed precision and in several processes.

    Args:
        scope (str): 'attn'; 'ffn' or 'norm', likewise with positions;
            'head', all outside of the backbone; 'lora', what
            :class:`LoRAModel` adds; 'full', all. Defaults to 'attn'.

    Raises:
        ValueError: If there is no such scope; before training starts, if
            there is nothing of it in the model.
    """

    priority = 'VERY_HIGH'  # before EMA copies the model

    def __init__(self, scope: str = 'attn'):
        one_of(SCOPES, scope=scope)
        self.scope = scope

    def before_run(self, runner) -> None:
        """Freeze before weights are loaded, and wrap the model again."""
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
        if is_model_wrapper(runner.model):  # it expects all gradients
            wrapper = runner.cfg.get('model_wrapper_cfg')
            runner.model = runner.wrap_model(wrapper, model)

    def before_train_iter(self, runner, batch_idx, data_batch=None) -> None:
        """Keep the statistics of frozen BatchNorm."""
        for module in self.still.values():
            module.eval()
