# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Model parts and the parts to fine-tune."""

from collections.abc import Iterator

from mmcv.cnn.bricks.norm import is_norm
from torch import nn

from mmclca.utils.messages import one_of

from .layers.resmlp_layer import Affine

# trainable parts per scope, see `part_of`
ALWAYS = ('head', 'reducer')
SCOPES = dict(
    attn=('attn', 'pos_embed', *ALWAYS),
    ffn=('ffn', 'pos_embed', *ALWAYS),
    norm=('norm', 'pos_embed', *ALWAYS),
    head=ALWAYS,
    lora=('lora', *ALWAYS),
    full=('attn', 'ffn', 'norm', 'pos_embed', 'lora', 'rest', *ALWAYS),
)
# steps of a module path that identify a part; the first match wins
NAMED = dict(
    reducer=('reducer', 'cache'),
    attn=('attn', 'mix'),
    ffn=('ffn', 'mlp'),
    pos_embed=('pos_embed',),
)


def part_of(path: str, module: nn.Module) -> str:
    """Return the model part of a parameter or module, given its path.

    Parts are 'attn', 'ffn', 'norm', 'pos_embed', 'reducer', 'lora', 'head'
    (all outside the backbone) and 'rest'. ``module`` is the module itself, or
    the owner of the parameter.
    """
    steps = path.split('.')
    if any(step.startswith('lora_') for step in steps):
        return 'lora'
    if 'backbone' not in steps:
        return 'head'
    named = [part for part, names in NAMED.items() if {*names} & {*steps}]
    if named[:1] == ['reducer']:
        return 'reducer'
    if is_norm(module) or isinstance(module, Affine):
        return 'norm'
    if any(step.startswith('gamma') for step in steps):
        return 'rest'
    return named[0] if named else 'rest'


def parts(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, str]]:
    """Yield name, parameter and model part of each parameter."""
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(path, recurse=False):
            yield name, parameter, part_of(name, module)


def tune_only(model: nn.Module, scope: str) -> tuple[int, int]:
    """Freeze all parameters outside a scope, in place.

    Returns the numbers of trainable and all parameters. Raises ValueError if
    the scope is unknown or matches no backbone parameter.
    """
    one_of(SCOPES, scope=scope)
    named = list(parts(model))
    kinds = {part for _, _, part in named}
    if scope != 'full' and (SCOPES[scope][0] not in kinds or len(kinds) < 2):
        raise ValueError(
            f'scope={scope!r} matches no backbone parameters of '
            f'{type(model).__name__}; scopes are {", ".join(SCOPES)}, where '
            "lora needs type='mmclca.LoRAModel', and full fits all models"
        )
    for _, parameter, part in named:
        # keep parameters frozen by a config or LoRAModel
        trains = parameter.requires_grad and part in SCOPES[scope]
        parameter.requires_grad_(trains)
    train = sum(p.numel() for _, p, _ in named if p.requires_grad)
    return train, sum(p.numel() for _, p, _ in named)
