# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a checkpoint file keeps its weights under."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import Tensor

from .error import CheckpointError

# likely first: mmengine, MoCo v3, open_clip; DeiT, MAE, the CLCA authors,
# TokenReduction; DINO, of whose two networks the teacher is the better one
WRAPPERS = ('state_dict', 'model', 'teacher')


@dataclass
class Source:
    """Where weights come from, for what is said of them.

    Args:
        name (str): Path or address of the file, as the user gave it.
        keys (list[str]): The names in the file.
    """

    name: str
    keys: list[str]


class StateDict(OrderedDict):
    """Weights, also found under the key that an EMA hook asks for."""

    def __missing__(self, key):
        if key == 'state_dict':
            return self
        raise KeyError(key)


def unwrap(checkpoint, source: str) -> dict:
    """Find the weights in a checkpoint, and note where they came from.

    Args:
        checkpoint (dict): What a file holds.
        source (str): Path or address of the file.

    Returns:
        dict: The checkpoint with its weights under ``'state_dict'``, or the
        weights alone where the file has them elsewhere.

    Raises:
        CheckpointError: If there are no weights where they are looked for.
    """
    weights, wrapper = checkpoint, None
    if isinstance(checkpoint, dict):
        wrapper = next((key for key in WRAPPERS if key in checkpoint), None)
        weights = checkpoint if wrapper is None else checkpoint[wrapper]
    if not isinstance(weights, dict):
        raise CheckpointError(
            f'{source} holds a {type(weights).__name__} in place of a dict '
            'of tensors: save model.state_dict() and load that'
        )
    if wrapper is None:
        _refuse_unknown(weights, source)
    weights = name_source(weights, source)
    if wrapper == 'state_dict':
        return dict(checkpoint, state_dict=weights)
    return weights


def _refuse_unknown(weights: dict, source: str) -> None:
    """Dicts and no tensor: the weights are under another key."""
    kinds = {
        kind
        for value in weights.values()
        for kind in (Tensor, dict)
        if isinstance(value, kind)
    }
    if kinds == {dict}:
        raise CheckpointError(
            f'{source} holds no weights where they are looked for: its keys '
            f'are {", ".join(map(str, weights))}, and weights are taken from '
            f'{", ".join(WRAPPERS)}, or from a file that holds nothing else. '
            'Save the dict of tensors alone and load that'
        )


def name_source(weights: dict, source: str) -> StateDict:
    """Weights whose metadata tell where they came from.

    Args:
        weights (dict): Tensors by name.
        source (str): Path or address of their file.
    """
    named = StateDict(weights)
    # torch hands the metadata of a module to its load hooks
    named._metadata = dict(getattr(weights, '_metadata', {}))
    source = Source(source, [str(key) for key in weights])
    for module in ('', 'backbone'):
        metadata = named._metadata.get(module, {})
        named._metadata[module] = dict(metadata, source=source)
    return named
