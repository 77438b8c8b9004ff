# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What differs between supported versions of timm, in its ViT.

An older version lacks some parts: they are refused by name when a model needs
them.
"""

from collections.abc import Callable
from inspect import signature

import timm
from packaging.version import Version
from timm.models import eva
from timm.models import vision_transformer as vit
from torch import nn

from mmclca.errors import Error

try:  # differential attention, since timm 1.0.24
    from timm.layers import DiffAttention

    DIFF_ATTENTIONS: tuple[type[nn.Module], ...] = (DiffAttention,)
    DIFF_BLOCKS: tuple[type[nn.Module], ...] = (vit.DiffParallelScalingBlock,)
except ImportError:
    DIFF_ATTENTIONS, DIFF_BLOCKS = (), ()

ATTENTIONS = (vit.Attention,) + DIFF_ATTENTIONS

try:  # since timm 1.0.15
    from timm.layers import AttentionRope

    EVA_ATTENTIONS: tuple[type[nn.Module], ...] = (
        eva.EvaAttention,
        AttentionRope,
    )
except ImportError:
    EVA_ATTENTIONS = (eva.EvaAttention,)

EVA_SINCE = '1.0.20'  # the first one with DINOv3
NEEDS_LATER_TIMM = (
    f'needs timm {EVA_SINCE} or later, and timm {timm.__version__} is '
    f'installed: pip install "timm>={EVA_SINCE}"'
)
# arguments of forward passes, and the version of timm that added them
SINCE = dict(attn_mask='1.0.16', output_dict='1.0.16', is_causal='1.0.26')


def supports_eva() -> bool:
    """Return whether timm has all parts of :class:`ReducedEva`."""
    return Version(timm.__version__) >= Version(EVA_SINCE)


def select_arguments(function: Callable, **arguments: object) -> dict:
    """Return the arguments that differ from the defaults None and False.

    Args:
        function (Callable): Forward pass of timm, to be called with them.
        **arguments: Arguments, by name.

    Raises:
        Error: If the installed version of timm lacks one of them.
    """
    accepted = signature(function).parameters
    chosen = {
        name: value
        for name, value in arguments.items()
        if value is not None and value is not False
    }
    for name in chosen:
        if name not in accepted:
            if Version(timm.__version__) >= Version(SINCE[name]):
                raise Error(
                    f'{name} is no argument of {function.__qualname__}() in '
                    f'timm {timm.__version__}; leave it out'
                )
            raise Error(
                f'{name} needs timm {SINCE[name]} or later, and timm '
                f'{timm.__version__} is installed: '
                f'pip install "timm>={SINCE[name]}"'
            )
    return chosen


def pools_prefix(model: nn.Module) -> bool:
    """Return whether the head of a model also pools the prefix."""
    # before timm 1.0.16, attention pooling did, and averages did not
    earlier = model.attn_pool is not None
    return vars(model).get('pool_include_prefix', earlier)
