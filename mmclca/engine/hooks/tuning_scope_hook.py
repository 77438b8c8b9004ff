# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Iterator

from mmcv.cnn.bricks.norm import is_norm
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import BaseLoop
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from mmclca.models.layers.resmlp_layer import Affine
from mmclca.registry import HOOKS
from mmclca.utils.messages import one_of
from mmclca.utils.wrappers import inner_model

# parts of a model, see `part_of`, that train in each scope
ALWAYS = ('head', 'reducer')
SCOPES = dict(
    attn=('attn', 'pos_embed', *ALWAYS),
    ffn=('ffn', 'pos_embed', *ALWAYS),
    norm=('norm', 'pos_embed', *ALWAYS),
    head=ALWAYS,
    lora=('lora', *ALWAYS),
    full=('attn', 'ffn', 'norm', 'pos_embed', 'lora', 'rest', *ALWAYS),
)
# parts by what the path of a module has in it, likely first
NAMED = dict(
    reducer=('reducer', 'cache'),
    attn=('attn', 'mix'),
    ffn=('ffn', 'mlp'),
    pos_embed=('pos_embed',),
)


def part_of(path: str, module: nn.Module) -> str:
    """Name the part of a classifier that a parameter or module is of.

    Args:
        path (str): Its name.
        module (nn.Module): The module, or the one whose parameter it is.
    """
    steps = path.split('.')
    if any(step.startswith('lora_') for step in steps):
        return 'lora'
    if 'backbone' not in steps:
        return 'head'
    named = [part for part, own in NAMED.items() if {*own} & {*steps}]
    if named[:1] == ['reducer']:
        return 'reducer'
    if is_norm(module) or isinstance(module, Affine):
        return 'norm'
    if any(step.startswith('gamma') for step in steps):
        return 'rest'
    return named[0] if named else 'rest'


def parts(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, str]]:
    """Yield the name of each parameter, itself, and its part."""
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(path, recurse=False):
            yield name, parameter, part_of(name, module)


def tune_only(model: nn.Module, scope: str) -> tuple[int, int]:
    """Freeze what is not in a scope, in place.

    Returns:
        tuple[int, int]: How many numbers train, and how many there are.

    Raises:
        ValueError: If there is no such scope, none of it in the model, or
            no backbone, of which it would be a part.
    """
    one_of(SCOPES, scope=scope)
    found = list(parts(model))
    kinds = {part for _, _, part in found}
    if scope != 'full' and (SCOPES[scope][0] not in kinds or len(kinds) < 2):
        raise ValueError(
            f'scope={scope!r}: {type(model).__name__} has no backbone with '
            f'such parameters; there are {", ".join(SCOPES)}, lora for a '
            "model of type='mmclca.LoRAModel', full for all"
        )
    for _, parameter, part in found:
        # what a config, or LoRAModel, froze stays so
        trains = parameter.requires_grad and part in SCOPES[scope]
        parameter.requires_grad_(trains)
    train = sum(p.numel() for _, p, _ in found if p.requires_grad)
    return train, sum(p.numel() for _, p, _ in found)


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
        """Freeze before weights are loaded, and tell processes of it."""
        if not isinstance(runner._train_loop, BaseLoop):
            return
        model = inner_model(runner.model)
        train, total = tune_only(model, self.scope)
        runner.logger.info(
            f'scope {self.scope!r}: {train:,} of {total:,} parameters train '
            f'({train / total:.1%})'
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
