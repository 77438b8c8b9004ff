# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare the parameters of a model with weights, and check them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.utils.messages import join_first


@dataclass(frozen=True)
class Differences:
    """Differences between a model and weights.

    Args:
        unfit (dict[str, str]): Reason per parameter of the model that the
            weights lack, or have in another shape.
        unexpected (list[str]): Names missing in the model.
    """

    unfit: dict[str, str]
    unexpected: list[str]

    def describe(
        self, may_be_new: tuple[str, ...], may_be_left: tuple[str, ...]
    ) -> list[str]:
        """List parameters with the reason.

        Args:
            may_be_new (tuple[str, ...]): Prefixes of parameters that weights
                may lack.
            may_be_left (tuple[str, ...]): Prefixes of weights to ignore.
        """
        wrong = [
            f'{name} {reason}'
            for name, reason in self.unfit.items()
            if not name.startswith(may_be_new)
        ]
        return wrong + [
            f'{name} is unexpected'
            for name in self.unexpected
            if not name.startswith(may_be_left)
        ]


def compare_weights(
    expected: Mapping[str, Tensor], weights: Mapping, prefix: str = ''
) -> Differences:
    """Compare weights under a prefix with the tensors of a model."""
    unfit = {}
    for name, value in expected.items():
        loaded = weights.get(prefix + name)
        if not isinstance(loaded, Tensor):
            unfit[name] = 'is missing'
        elif loaded.shape != value.shape:
            unfit[name] = (
                f'has shape {tuple(loaded.shape)}, expected '
                f'{tuple(value.shape)}'
            )
    under = (key for key in weights if key.startswith(prefix))
    names = (key[len(prefix) :] for key in under)
    return Differences(unfit, [name for name in names if name not in expected])


def refuse_broken(tensors: Mapping[str, Tensor], source: str) -> None:
    """Raise ``Error`` if a model would predict NaN.

    The error names infinite tensors and negative variances.
    """
    broken = []
    for name, tensor in tensors.items():
        if tensor.is_complex():
            broken.append(name)
            continue
        tensor = tensor.float()  # 8-bit types lack some functions
        negative = name.endswith('running_var') and (tensor < 0).any()
        if negative or not tensor.isfinite().all():
            broken.append(name)
    if broken:
        raise Error(
            f'{source}: {len(broken)} tensors contain NaN, infinite or '
            f'complex numbers or negative variances ({join_first(broken, 6)})'
            '; damaged file or diverged training; use another checkpoint'
        )


def refuse_missing(
    model: nn.Module, new: Iterable[str], may_be_new: Iterable[str], name: str
) -> None:
    """Raise if parameters are missing, as random ones predict noise."""
    needed = dict(model.named_parameters()).keys() - {*may_be_new}
    missing = [parameter for parameter in new if parameter in needed]
    if missing:
        raise Error(
            f'{name}: {len(missing)} parameters of the model are missing or '
            f'have another shape or type ({join_first(missing, 6)}); use the '
            'config of its training and check model.head.num_classes'
        )
