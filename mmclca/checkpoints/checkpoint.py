# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""An opened checkpoint: its weights and where they come from."""

import os
import re
from collections.abc import Mapping

import torch
from mmengine.logging import MMLogger
from torch import Tensor

from mmclca.utils.messages import printable

from .error import CheckpointError
from .families.pretraining import DECODED, rename_pretraining

# keys of the weights, the likely first: mmengine, MoCo v3, open_clip; DeiT,
# MAE, the CLCA authors, TokenReduction; DINO, with the teacher as the better
# network
WRAPPERS = (
    'state_dict',
    'model',
    'teacher',
    'model_state_dict',
    'model_state',
    'module',
    'net',
    'network',
    'target_encoder',
    'encoder',
    'backbone',
    'weights',
    'params',
    'student',
)
EMA_SETS = re.compile(r'(?i)(?:^|_)(?:ema|swa|averaged?)(?:_|$)')
# wrapped modules: torch.compile, FSDP, activation checkpoints
INSIDE = re.compile(
    r'\b_(?:orig_mod|fsdp_wrapped_module|checkpoint_wrapped_module)\.'
)
# prefix for a model inside ``nn.Sequential``
NUMBERED = re.compile(r'([\w-]+\.)*?(\d+|\w*-[\w-]*)\.')


class Checkpoint(dict):
    """An opened checkpoint, with the keys of MMEngine's format.

    The key ``'state_dict'`` always holds the weights: dense tensors, without
    the name prefixes of model wrappers. Hooks of a runner read and change the
    dict.

    Args:
        contents (Mapping): Contents, with the weights as ``'state_dict'``.
        name (str): Path or URL as given by the user.
        file_names (list[str], optional): Parameter names in the file.
            Defaults to None: from the weights.
        arch (str): Value of ``arch`` in the file, such as 'vit_small'.
            Defaults to ''.
        choice (str): Description of the chosen weights, if the file has
            several sets. Defaults to ''.
    """

    def __init__(
        self,
        contents: Mapping,
        name: str,
        file_names: list[str] | None = None,
        arch: str = '',
        choice: str = '',
    ):
        super().__init__(contents)
        self.name, self.arch, self.choice = name, arch, choice
        self.file_names = [*self.weights] if file_names is None else file_names

    @property
    def weights(self) -> dict[str, Tensor]:
        """Tensors by parameter name."""
        return self['state_dict']

    @property
    def meta(self) -> dict:
        """Metadata as in MMEngine; empty if missing."""
        return get_dict(self, 'meta')

    @classmethod
    def from_weights(cls, weights: Mapping, name: str) -> 'Checkpoint':
        """Wrap a state dict called ``name`` in messages."""
        named = _clean(weights)
        return cls(dict(state_dict=named), name, [str(key) for key in weights])

    @classmethod
    def from_contents(cls, contents: object, name: str) -> 'Checkpoint':
        """Find the weights in the contents of a file called ``name``.

        A moving average is preferred, as in timm. The choice between several
        sets of weights is logged.

        Raises:
            CheckpointError: If the weights are not a dict, or under an
                unknown key.
        """
        if isinstance(contents, Checkpoint):
            return contents
        if not isinstance(contents, dict):
            raise _not_weights(contents, name)
        wrapper, unused_keys = _choose_set(contents)
        weights = contents
        if wrapper is not None:
            weights = contents[wrapper]
            weights = _find_tensors(weights) or weights
        if not isinstance(weights, dict):
            raise _not_weights(weights, name)
        if wrapper is None:
            _refuse_unknown(weights, name)
        file_names = [str(key) for key in weights]
        if any(map(DECODED.match, file_names)):
            weights = rename_pretraining(weights)
        arch, choice = contents.get('arch', ''), ''
        if unused_keys:
            choice = (
                f'{name} contains several sets of weights; using {wrapper}, '
                f'not {", ".join(unused_keys)}'
            )
            MMLogger.get_current_instance().info(printable(choice))
        kept = contents if 'state_dict' in contents else {}
        kept = dict(kept, state_dict=_clean(weights))
        return cls(kept, name, file_names, arch, choice)


def get_dict(contents: Mapping, key: str) -> dict:
    """Return a dict inside a checkpoint; empty if it is not a dict."""
    value = contents.get(key)
    return value if isinstance(value, dict) else {}


def unwrap_in_place(state_dict: dict) -> None:
    """Replace a checkpoint of another program by its weights.

    mmengine and MMPretrain's tools open only ``state_dict`` in a file, and
    take all other keys, such as ``model``, for parameters.
    """
    values = state_dict.values()
    has_tensors = any(isinstance(value, Tensor) for value in values)
    if not has_tensors and any(isinstance(value, dict) for value in values):
        checkpoint = Checkpoint.from_contents({**state_dict}, 'the checkpoint')
        state_dict.clear()
        state_dict.update(checkpoint.weights)


def _clean(weights: Mapping) -> dict[str, Tensor]:
    """Drop the prefixes of model wrappers, and values other than weights.

    These are sparse, quantized and nested tensors, and other types. Tensors
    are shared.
    """
    start = 0
    if len(weights) > 9:
        shared = os.path.commonprefix([str(key) for key in weights])
        shared = shared[: shared.rfind('.') + 1]  # such as ``1.``
        start = len(shared) if NUMBERED.match(shared) else 0
    return {
        INSIDE.sub('', str(key)[start:]).removeprefix('module.'): value
        for key, value in weights.items()
        if isinstance(value, Tensor)
        and value.layout == torch.strided
        and not value.is_quantized
        and not value.is_nested
    }


def _choose_set(contents: dict) -> tuple[str | None, list[str]]:
    """Choose weights in a file, preferably a moving average.

    Return their key, None for the whole file, and the keys of other sets.
    """
    sets: dict[str, dict] = {}
    for key, value in contents.items():
        if tensors := _find_tensors(value):
            sets[key] = tensors
    largest = max(map(len, sets.values()), default=0)
    averages = [
        key
        for key, tensors in sets.items()
        if EMA_SETS.search(str(key))
        # mmengine: the weights without EMA; the average is in state_dict
        and 'steps' not in tensors
        # too few tensors are statistics
        and 2 * len(tensors) >= largest
    ]
    keys = [*averages, *(key for key in WRAPPERS if key in sets)]
    if keys:
        return keys[0], keys[1:]
    return next((key for key in WRAPPERS[:3] if key in contents), None), []


def _find_tensors(value: object) -> dict | None:
    """Return the tensor dict inside a value, None without one."""
    for _ in range(4):
        if not isinstance(value, dict):
            break
        if any(isinstance(part, Tensor) for part in value.values()):
            return value
        likely = (value[key] for key in WRAPPERS if key in value)
        dicts = (part for part in value.values() if isinstance(part, dict))
        value = next(likely, None) or next(dicts, None)
    return None


def _not_weights(value: object, name: str) -> CheckpointError:
    return CheckpointError(
        f'{name} contains a {type(value).__name__} instead of a dict of '
        'tensors; save model.state_dict() and load that file'
    )


def _refuse_unknown(weights: dict, name: str) -> None:
    """Raise if the weights are under an unknown key."""
    has_dicts, has_tensors = (
        any(isinstance(value, value_type) for value in weights.values())
        for value_type in (dict, Tensor)
    )
    if has_dicts and not has_tensors:
        raise CheckpointError(
            f'no weights found in {name}, whose keys are '
            f'{", ".join(map(str, weights))}; expected a dict of tensors, '
            f'alone or under {", ".join(WRAPPERS)}; save the dict of tensors '
            'alone and load that file'
        )
