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
        ValueError: If the scope is unknown; before training starts, if the
            model lacks parameters in this scope.
    """

    priority = 'VERY_HIGH'  # run before EMA copies the model

    def __init__(self, scope: str = 'attn'):
        one_of(SCOPES, scope=scope)
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
