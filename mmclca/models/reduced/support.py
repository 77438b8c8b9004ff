# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which models can be reduced, and why others cannot."""

import re
from collections.abc import Collection
from inspect import isroutine
from typing import Any, NoReturn

from timm.models.deit import VisionTransformerDistilled
from timm.models.eva import Eva
from timm.models.vision_transformer import ParallelThingsBlock
from timm.models.vision_transformer import VisionTransformer as TimmViT
from torch import nn

from mmclca.errors import Error
from mmclca.utils.messages import join_first, warn

from .base import ReducedModel
from .calls import accepts_run
from .rotary_angles import ANGLES
from .timm_eva import ReducedEva
from .timm_eva_layers import EVA_FUNCTIONS
from .timm_model import LAYER_FUNCTIONS, POOLS
from .timm_versions import (
    ATTENTIONS,
    EVA_ATTENTIONS,
    NEEDS_LATER_TIMM,
    supports_eva,
)
from .timm_vit import ReducedDistilledViT, ReducedViT
from .transformers_families import TRANSFORMERS
from .transformers_vit import reduced_transformer

TIMM: dict[type, type[ReducedModel]] = {
    TimmViT: ReducedViT,
    VisionTransformerDistilled: ReducedDistilledViT,
}
if supports_eva():
    TIMM[Eva] = ReducedEva
EXPECTED = (
    'expected VisionTransformer, VisionTransformerDistilled or Eva of timm, '
    'or ViT, DeiT, DINOv2, DINOv3, CLIP or SigLIP of Transformers'
)
REASONS = {  # by pattern of the class name
    '^Eva$': f'it {NEEDS_LATER_TIMM}',
    'Beit|Data2Vec|RelPos': 'its attention has a bias per pair of positions',
    'SAM|Swin': 'its attention is limited to windows of the patch grid',
}


def reduced_class(model: nn.Module) -> type[ReducedModel]:
    """Return the class of the reduced model.

    Args:
        model (nn.Module): The original.

    Raises:
        Error: If the model is not supported; the message says why.
    """
    if not isinstance(model, nn.Module):
        raise Error(
            f'model={model!r} must be a module, such as '
            "timm.create_model('deit_tiny_patch16_224')"
        )
    if isinstance(model, ReducedModel):
        _refuse(model, 'they are already reduced; pass the original')
    model_class: type = type(model)
    reduced: type[ReducedModel]
    if _is_transformers(model):
        reduced = reduced_transformer(model_class)
    else:
        reduced = TIMM[_original(model, TIMM, '')]
        _check_blocks(model)
    _check_instances(model, reduced)
    return reduced


def _check_blocks(model: Any) -> None:
    """Refuse layers whose parts are not those of timm."""
    for name, block in model.blocks.named_children():
        name = f'blocks.{name}'
        block_class = _original(block, LAYER_FUNCTIONS, name)
        if issubclass(block_class, ParallelThingsBlock):
            attns = {
                f'{name}.attns.{i}.attn': branch.attn
                for i, branch in enumerate(block.attns)
            }
        elif hasattr(block, 'attn'):
            attns = {f'{name}.attn': block.attn}
        else:
            continue  # the block is an attention itself
        is_eva = block_class in EVA_FUNCTIONS
        classes = EVA_ATTENTIONS if is_eva else ATTENTIONS
        for attn_name, attn in attns.items():
            _check_attention(attn, classes, attn_name)
    for name, classes in (('attn_pool', POOLS), ('rope', ANGLES)):
        part = model._modules.get(name)
        if part is not None:
            _original(part, classes, name)


def _check_attention(
    attn: nn.Module, classes: tuple[type[nn.Module], ...], name: str
) -> None:
    """Refuse another attention, or a wrapper that stops keyword arguments."""
    inside = [part for part in attn.modules() if isinstance(part, classes)]
    if isinstance(attn, classes) or not inside:
        _original(attn, classes, name)
    elif accepts_run(attn):
        _original(inside[0], classes, name)
    else:
        _refuse(
            attn,
            f'it wraps the attention {name}; let its forward take **kwargs '
            'and pass them to the attention',
        )


def _original(module: nn.Module, classes: Collection[type], name: str) -> type:
    """Return the class in ``classes`` with the behavior of a module.

    It is the class of the module, or a base class if the classes between
    define no more than ``__init__``.
    """
    overridden = []
    for base in type(module).__mro__:
        if base in classes:
            break
        overridden += [
            method
            for method, value in vars(base).items()
            if (isroutine(value) or isinstance(value, property))
            and method != '__init__'
        ]
    else:
        names = ', '.join(supported.__name__ for supported in classes)
        other = f"{name} is none of timm's {names}"
        _refuse(module, other if name else _reason(module))
    owner: Any = next(x for x in base.__mro__ if 'forward' in vars(x))
    forward = owner.forward
    if forward.__module__ != owner.__module__:
        _refuse(
            module,
            f'{base.__name__}.forward was replaced by {forward.__module__}.'
            f'{forward.__qualname__}, which token reduction would not run',
        )
    if not overridden:
        return base
    names = join_first(f'{method}()' for method in overridden)
    part = f' in {name}' * bool(name)
    _refuse(
        module,
        f"it overrides {names} of timm's {base.__name__}{part}, which token "
        'reduction would not run',
    )


def _reason(module: nn.Module) -> str:
    """Say why a class is not supported, or how to pass what it wraps."""
    name = type(module).__name__
    reasons = [why for names, why in REASONS.items() if re.search(names, name)]
    if reasons:
        return reasons[0]
    if type(module).__module__.startswith('mmpretrain.'):
        return f'{EXPECTED}; reduce its config with with_reduction()'
    for path, part in module.named_modules():
        if path and is_supported(part):
            return (
                f'it wraps {type(part).__name__}; pass its module '
                f'{_path(path)}, and wrap the result'
            )
    return EXPECTED


def _path(name: str) -> str:
    """Return a module name as Python, such as ``model[1]``."""
    parts = [f'[{x}]' if x.isdigit() else f'.{x}' for x in name.split('.')]
    return f'model{"".join(parts)}'


def is_supported(module: nn.Module) -> bool:
    """Return whether a module is of a class that can be reduced."""
    is_timm = not {*type(module).__mro__}.isdisjoint(TIMM)
    return is_timm or _is_transformers(module)


def _is_transformers(module: nn.Module) -> bool:
    module_class = type(module)
    library = module_class.__module__.partition('.')[0]
    return library == 'transformers' and module_class.__name__ in TRANSFORMERS


def _refuse(module: nn.Module, why: str) -> NoReturn:
    module_class = type(module)
    name = f'{module_class.__module__}.{module_class.__qualname__}'
    raise Error(f'the tokens of {name} cannot be reduced: {why}')


def _check_instances(
    model: nn.Module, model_class: type[ReducedModel]
) -> None:
    """Refuse attributes of instances that hide methods.

    Wrappers such as those of accelerate set ``forward`` of a module; the
    reduced model would run it, or ignore it.
    """
    for name, module in model.named_modules():
        owner = type(module) if name else model_class
        for attribute in vars(module):
            if not hasattr(owner, attribute):
                continue
            hidden = getattr(owner, attribute)
            if callable(hidden) or isinstance(hidden, property):
                path = f'{_path(name) if name else "model"}.{attribute}'
                raise Error(
                    f'{path} is set on the instance, so it would replace '
                    'the method with token reduction; remove it first, for '
                    f'example with "del {path}" or unwrap_model(model, '
                    'keep_fp32_wrapper=False) of accelerate'
                )
    if any(x._compiled_call_impl is not None for x in model.modules()):
        warn('the reduced model is not compiled; call its compile() again')
