# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from mmclca.utils.known_names import not_one_of

# how the rate of stochastic depth goes from the first layer to the last
DROP_PATH_MODES = ('linear', 'uniform')


def use_plain_rates(model: nn.Module) -> None:
    """Make the rates of stochastic depth plain floats, in place.

    mmpretrain's are numpy's, which break ``torch.compile(fullgraph=True)``.
    """
    for path in _paths(model):
        path.drop_prob = float(path.drop_prob)


def set_drop_path(layers: nn.Module, rate: float, mode: str) -> None:
    """Set the rates of stochastic depth of mmpretrain's layers, in place.

    Raises:
        ValueError: If there is no such mode.
    """
    if mode not in DROP_PATH_MODES:
        raise ValueError(
            f'drop_path_mode: {not_one_of(mode, DROP_PATH_MODES)}'
        )
    if mode == 'uniform':
        for path in _paths(layers):
            path.drop_prob = rate


def _paths(model: nn.Module) -> list[DropPath]:
    return [path for path in model.modules() if isinstance(path, DropPath)]


def kept_branches(x: Tensor, branches: int, drop_prob: float) -> Tensor:
    """Which branches of which samples stochastic depth keeps.

    Args:
        x (Tensor): Has the number of samples B, type and device.
        branches (int): Number of branches, n.
        drop_prob (float): Probability that a branch of a sample is dropped,
            independent of all others.

    Returns:
        Tensor: 1 or 0, (B, n).
    """
    return x.new_empty(x.size(0), branches).bernoulli_(1 - drop_prob)
