# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find the weights in a file of any release, rename and report them."""

import os
import re
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from mmengine.logging import MMLogger
from torch import Tensor

from mmclca.utils.messages import join_first, printable

from .error import CheckpointError
from .families import FAMILIES, Family
from .families.family import renamed
from .families.pretraining import DECODED, rename_pretraining
from .families.vit import BARE, CLASSIFIER

# embedding dimensions with twelve heads in MAE-Lite and MIRL
TWELVE = (192, 384)
# keys of the weights, the likely first: mmengine, MoCo v3, open_clip; DeiT,
# MAE, the CLCA authors, TokenReduction; DINO, with the teacher as the better
# network
WRAPPERS = (
    *('state_dict', 'model', 'teacher', 'model_state_dict', 'model_state'),
    *('module', 'net', 'network', 'target_encoder', 'encoder', 'backbone'),
    *('weights', 'params', 'student'),
)
# names of moving averages, preferred as in timm
EMA = re.compile(
    r'(?i)(?:^|[._])(?:ema|swa|averaged?|teacher|target)(?:[._]|$)'
)
EMA_SETS = re.compile(r'(?i)(?:^|_)(?:ema|swa|averaged?)(?:_|$)')
# wrapped modules: torch.compile, FSDP, activation checkpoints
INSIDE = re.compile(
    r'\b_(?:orig_mod|fsdp_wrapped_module|checkpoint_wrapped_module)\.'
)
# module names, without layer numbers
OUTER = r'(?:[A-Za-z_]\w*\.)*?'
# prefix for a model inside ``nn.Sequential``
NUMBERED = re.compile(r'([\w-]+\.)*?(\d+|\w*-[\w-]*)\.')
# networks next to the encoder
ASIDE = r'momentum_encoder|encoder_k\b|decoder|predictor|text|student'
# a classifier next to an encoder with a prefix
HEAD = re.compile(rf'({OUTER})(?:head|fc|classifier)\.(weight|bias)')
# MoCo v3 releases; their ViT-S has twelve heads
MOCO = re.compile(rf'{OUTER}(?:base|momentum)_encoder\.')
MOCO_ARCHS = ('vit_small', 'vit_conv_small')


@dataclass
class LoadReport:
    """Loaded, new, unused and resized tensors, by parameter name.

    New ones are missing in the file. ``resized`` has descriptions.
    """

    source: str
    loaded: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = {
            'resized': self.resized,
            'new, not loaded': _by_part(self.new),
            'not used here': _by_part(self.unused),
        }
        others = [
            f'{part}: {join_first(x, 6)}' for part, x in parts.items() if x
        ]
        loaded = f'{self.source}: {len(self.loaded)} tensors loaded'
        return printable('; '.join([loaded, *others]))

    def log(self) -> None:
        """Write the report to mmengine's log."""
        MMLogger.get_current_instance().info(str(self))


def _by_part(names: list[str]) -> list[str]:
    """Shorten names to ``head.layers.* (2)``, by their first two parts."""
    parts = {}
    for name in names:
        parts.setdefault('.'.join(name.split('.')[:2]), []).append(name)
    return [
        found[0] if len(found) == 1 else f'{part}.* ({len(found)})'
        for part, found in parts.items()
    ]


@dataclass
class WeightSource:
    """Weight source, passed to load hooks as metadata.

    Hooks call :meth:`begin`; the last hook (backbone) also calls :meth:`end`.

    Args:
        name (str): Path or URL as given by the user.
        keys (list[str]): Names in the file.
        meta (dict): File metadata, as in mmengine. Defaults to {}.
        arch (str): Value of ``arch`` in the file, such as 'vit_small'.
            Defaults to ''.
        choice (str): Description of the chosen set, if the file has several
            sets of weights. Defaults to ''.
        report (LoadReport, optional): Current report. Defaults to
            None: no hook has run.
        on_end (Callable): Receives the complete report. Defaults to
            ``LoadReport.log``.
    """

    name: str
    keys: list[str]
    meta: dict = field(default_factory=dict)
    arch: str = ''
    choice: str = ''
    report: LoadReport | None = None
    on_end: Callable[[LoadReport], None] = LoadReport.log

    def begin(self) -> LoadReport:
        """Return the current report; the first hook of a load creates it."""
        self.report = self.report or LoadReport(self.name)
        return self.report

    def end(self) -> None:
        """Pass the complete report to ``on_end``, and forget it."""
        self.on_end(self.report)
        self.report = None


class StateDict(OrderedDict):
    """Weights; the key ``'state_dict'``, read by EMA hooks, returns them."""

    def __missing__(self, key):
        if key == 'state_dict':
            return self
        raise KeyError(key)


def attach_source(weights: dict, name: str) -> StateDict:
    """Copy a state dict, with its source as metadata.

    Drop prefixes of wrapped models, sparse, quantized and nested tensors, and
    other values.
    Tensors are shared.
    """
    outer = _numbered_prefix([str(key) for key in weights])
    # without wrapper prefixes
    pairs = (
        (INSIDE.sub('', str(key)[outer:]).removeprefix('module.'), value)
        for key, value in weights.items()
        if isinstance(value, Tensor) and not _is_odd(value)
    )
    named = StateDict(pairs)
    # torch passes module metadata to the load hooks
    named._metadata = dict(getattr(weights, '_metadata', {}))
    source = WeightSource(name, [str(key) for key in weights])
    for module in ('', 'backbone'):
        metadata = named._metadata.get(module, {})
        named._metadata[module] = dict(metadata, source=source)
    return named


def _numbered_prefix(keys: list[str]) -> int:
    """Return the length of a common prefix such as ``1.``, else 0.

    It is 0 for fewer than ten keys.
    """
    shared = os.path.commonprefix(keys)
    shared = shared[: shared.rfind('.') + 1]
    return len(shared) if len(keys) > 9 and NUMBERED.match(shared) else 0


def _is_odd(value) -> bool:
    """Return whether a tensor is sparse, quantized or nested."""
    is_dense = value.layout == torch.strided
    return not is_dense or value.is_quantized or value.is_nested


def unwrap(checkpoint, name: str) -> dict:
    """Find the weights in a checkpoint, and attach their source.

    Return a checkpoint with the key ``'state_dict'`` as a copy, with the
    chosen weights under this key. Return only the weights of others.

    Raises:
        CheckpointError: If the weights are not a dict, or under an unknown
            key.
    """
    weights, wrapper, others = checkpoint, None, []
    if isinstance(checkpoint, dict):
        wrapper, weights, others = _choose_set(checkpoint)
    if not isinstance(weights, dict):
        raise CheckpointError(
            f'{name} contains a {type(weights).__name__} instead of a dict of '
            'tensors; save model.state_dict() and load that file'
        )
    if wrapper is None:
        _refuse_unknown(weights, name)
    keys = [str(key) for key in weights]
    if any(map(DECODED.match, keys)):
        weights = rename_pretraining(weights)
    weights = attach_source(weights, name)
    source = source_of(weights)
    source.keys, source.arch = keys, checkpoint.get('arch', '')
    if others:
        source.choice = (
            f'{name} contains several sets of weights; using {wrapper}, not '
            f'{", ".join(others)}'
        )
        MMLogger.get_current_instance().info(printable(source.choice))
    if 'state_dict' in checkpoint:
        return dict(checkpoint, state_dict=weights)
    return weights


def unwrap_in_place(state_dict: dict) -> None:
    """Replace a checkpoint that another program loads by its weights.

    mmengine and MMPretrain's tools open only ``state_dict`` in a file. Other
    keys, such as ``model``, would be ignored with a warning.
    """
    values = state_dict.values()
    has_tensors = any(isinstance(value, Tensor) for value in values)
    if not has_tensors and any(isinstance(value, dict) for value in values):
        weights = weights_of(unwrap(state_dict, 'the checkpoint'))
        state_dict.clear()
        state_dict.update(weights)


def _choose_set(checkpoint: dict) -> tuple[str | None, object, list[str]]:
    """Choose weights in a file, preferably a moving average.

    Return their key, the weights, and the keys of other sets. Without a known
    key, return None and the whole file.
    """
    sets = {key: _inner_set(value) for key, value in checkpoint.items()}
    sets = {key: found for key, found in sets.items() if found}
    largest = max(map(len, sets.values()), default=0)
    averages = [
        key
        for key, found in sets.items()
        if EMA_SETS.search(str(key))
        # mmengine: the weights without EMA; the average is in state_dict
        and 'steps' not in found
        # too few tensors are statistics
        and 2 * len(found) >= largest
    ]
    keys = [*averages, *(key for key in WRAPPERS if key in sets)]
    if keys:
        return keys[0], sets[keys[0]], keys[1:]
    key = next((key for key in WRAPPERS[:3] if key in checkpoint), None)
    return key, checkpoint if key is None else checkpoint[key], []


def _inner_set(found) -> dict | None:
    """Return the tensor dict inside a value, None without one."""
    for _ in range(4):
        if not isinstance(found, dict):
            break
        if any(isinstance(value, Tensor) for value in found.values()):
            return found
        known = (found[key] for key in WRAPPERS if key in found)
        rest = (value for value in found.values() if isinstance(value, dict))
        found = next(known, None) or next(rest, None)
    return None


def _refuse_unknown(weights: dict, name: str) -> None:
    """Raise if the weights are under an unknown key."""
    has_dicts, has_tensors = (
        any(isinstance(value, kind) for value in weights.values())
        for kind in (dict, Tensor)
    )
    if has_dicts and not has_tensors:
        raise CheckpointError(
            f'no weights found in {name}, whose keys are '
            f'{", ".join(map(str, weights))}; expected a dict of tensors, '
            f'alone or under {", ".join(WRAPPERS)}; save the dict of tensors '
            'alone and load that file'
        )


def weights_of(checkpoint: dict) -> StateDict:
    """Return the weights in an opened checkpoint, with their source."""
    weights = checkpoint.get('state_dict', checkpoint)
    if isinstance(weights, StateDict):
        return weights
    weights = attach_source(weights, 'the checkpoint')  # opened by mmengine
    source_of(weights).meta = checkpoint.get('meta', {})
    return weights


def source_of(weights: StateDict) -> WeightSource:
    """Return the source attached to weights."""
    return weights._metadata['']['source']


def recognize(names: list[str]) -> tuple[Family, str] | None:
    """Recognize the release family by parameter names.

    Return the family and the encoder prefix; None for classifiers from this
    package and unknown families.
    """
    # first, because cache.clr matches other families
    if any(re.match(BARE.mark, name) for name in names):
        return BARE, ''
    for family in FAMILIES:
        mark = re.compile(f'({OUTER})(?:{family.mark})')
        found = Counter(m[1] for m in map(mark.match, names) if m)
        if found:
            own = family is CLASSIFIER and '' in found
            return None if own else (family, _choose_encoder(found))
    return None


def _choose_encoder(found: Counter[str]) -> str:
    """Choose the encoder prefix; ``found`` counts names per prefix."""
    # next to a student, the teacher is its average
    has_student = any('student' in prefix for prefix in found)
    aside = re.compile(ASIDE if has_student else f'{ASIDE}|teacher')

    def badness(prefix: str) -> tuple:
        is_average = bool(EMA.search(prefix))
        is_aside = bool(aside.search(prefix))
        return is_aside, not prefix, not is_average, -found[prefix]

    return min(found, key=badness)


def rename_to_classifier(state_dict: dict, prefix: str) -> list[str]:
    """Rename the weights under a prefix to classifier names, in place.

    Existing classifier names are kept, and so are names from other networks
    in the file (a momentum encoder, a text tower).

    Returns:
        list[str]: Names dropped by the release family.
    """
    names = _names(state_dict, prefix)
    found = recognize(names)
    if found is None:
        return []
    family, encoder = found
    heads = {name: HEAD.fullmatch(name) for name in names}
    weights = {}
    for name in names:
        if name.startswith(encoder):
            part = name[len(encoder) :]
            for old, new in family.spelling:
                part = part.replace(old, new)
            weights[part] = state_dict.pop(prefix + name)
        elif heads[name] and encoder.startswith(heads[name][1]):
            part = f'head.{heads[name][2]}'
            weights[part] = state_dict.pop(prefix + name)
    left_out = [name for name in weights if re.match(family.left_out, name)]
    for name in left_out:
        del weights[name]
    _reform(weights, family)
    for name, value in weights.items():
        state_dict[prefix + renamed(name, family)] = value
    return left_out


def _reform(weights: dict, family: Family) -> None:
    """Convert and stack tensors, in place."""
    for pattern, new, change in family.values:
        for match in _matches(weights, pattern):
            weights[match.expand(new)] = change(weights[match.string])
    for pattern, new in family.stacked:
        whole = {}
        for match in sorted(_matches(weights, pattern), key=_place):
            rows = whole.setdefault(match.expand(new), [])
            rows.append(weights.pop(match.string))
        weights |= {name: torch.cat(rows) for name, rows in whole.items()}


def _place(match: re.Match) -> int:
    """Return the place of a part: its number, or query, key, value."""
    part = match['part']
    return int(part) if part.isdigit() else 'qkv'.index(part[0])


def _matches(weights: dict, pattern: str) -> list[re.Match]:
    """Match complete names, in the order of the weights."""
    found = (re.fullmatch(pattern, name) for name in weights)
    return [match for match in found if match]


def rename_to_backbone(state_dict: dict, prefix: str) -> list[str]:
    """Rename the weights under a prefix to backbone names, in place.

    Works like :func:`rename_to_classifier`, but drops ``backbone.`` from the
    names, and all other weights under the prefix.

    Returns:
        list[str]: The same names as :func:`rename_to_classifier`.
    """
    if any(re.match(BARE.mark, name) for name in _names(state_dict, prefix)):
        return []
    left_out = rename_to_classifier(state_dict, prefix)
    own = f'{prefix}backbone.'
    if any(key.startswith(own) for key in state_dict):
        for name in _names(state_dict, prefix):
            value = state_dict.pop(prefix + name)
            if name.startswith('backbone.'):
                own_name = name.removeprefix('backbone.')
                state_dict[prefix + own_name] = value
    return left_out


def _names(state_dict: dict, prefix: str) -> list[str]:
    return [key[len(prefix) :] for key in state_dict if key.startswith(prefix)]


def heads_of_release(
    keys: list[str], width: int, arch: str = ''
) -> int | None:
    """Return the head count for a release, None if unknown.

    It is 12 for small encoders from MoCo v3, and from MAE-Lite and MIRL in
    files with their decoders.
    """
    decoded = any(map(DECODED.match, keys))
    of_moco = arch in MOCO_ARCHS or any(map(MOCO.match, keys))
    small = decoded and width in TWELVE or of_moco and width == 384
    return 12 if small else None
