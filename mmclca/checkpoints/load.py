# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load weights from any file into a model.

``load_into_*`` are load hooks in backbones and classifiers, so they also act
on loading by mmengine and mmpretrain. Loading from a file is reported in one
log line. :func:`load` opens a checkpoint, loads it and returns a report.
"""

from collections.abc import Collection
from copy import deepcopy
from os import PathLike

import torch
from mmengine.logging import MMLogger
from mmengine.runner import load_state_dict
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.utils.messages import join_first

from .attention_heads import compare_heads
from .error import CheckpointError
from .opening import open_checkpoint
from .positions import below, explain_rows, fit_positions
from .releases import (
    LoadReport,
    rename_to_backbone,
    rename_to_classifier,
    source_of,
    unwrap_in_place,
    weights_of,
)

# tokens that a backbone may lack
MAY_BE_LEFT = ('cls_token', 'mask_token')
# names of a linear classifier in the heads of this package and MMPretrain
LINEAR = ('fc.', 'layers.head.', 'head.')


def load_into_classifier(model, state_dict: dict, prefix: str, metadata: dict):
    """Load hook for classifiers: rename weights, including the head.

    Raises:
        CheckpointError: If the classifier of the file fits the head, but has
            an unknown name.
    """
    unwrap_in_place(state_dict)
    left_out = rename_to_classifier(state_dict, prefix)
    if 'source' in metadata:
        metadata['source'].begin().unused += left_out
    if model is not None and model.with_head:
        _fit_linear(model.head, state_dict, f'{prefix}head.')
        _refuse_unnamed(model.head, state_dict, prefix)


def _fit_linear(head: nn.Module, state_dict: dict, prefix: str) -> None:
    """Rename a linear classifier for any head, log if it is new."""
    tensors = head.state_dict()
    if _is_matrix(tensors, 'weight'):  # PerClassHead reads a linear classifier
        tensors['fc.weight'] = tensors['weight']
    linear = next(
        (x for x in LINEAR if _is_matrix(tensors, f'{x}weight')), None
    )
    names = [f'{prefix}{x}' for x in LINEAR]
    stored = [x for x in names if _is_matrix(state_dict, f'{x}weight')]
    stored = [x for x in stored if x == f'{prefix}{linear}'] or stored
    if not stored:
        return
    shape = state_dict[f'{stored[0]}weight'].shape
    if linear is not None and shape == tensors[f'{linear}weight'].shape:
        _refuse_lost_layer(head, state_dict, prefix)
        for part in ('weight', 'bias'):
            if stored[0] + part in state_dict:
                weights = state_dict.pop(stored[0] + part)
                state_dict[f'{prefix}{linear}{part}'] = weights
    elif shape not in [value.shape for value in tensors.values()]:
        MMLogger.get_current_instance().info(
            f'the weights have a classifier of shape {tuple(shape)}, '
            f'{type(head).__name__} has none: the classifier is new, train it'
        )


def _refuse_lost_layer(head: nn.Module, weights: dict, prefix: str) -> None:
    """Raise if a classifier would load without the hidden layer before it."""
    hidden = 'layers.pre_logits.weight'
    if f'{prefix}{hidden}' in weights and hidden not in head.state_dict():
        raise CheckpointError(
            f'{type(head).__name__} lacks the hidden layer {prefix}{hidden} '
            'of the file, so its classes would be wrong; use '
            'VisionTransformerClsHead with hidden_dim, or remove both layers '
            'from the file to start with a new classifier'
        )


def _is_matrix(tensors: dict, name: str) -> bool:
    """Return whether a tensor has two dimensions; False if it is missing."""
    value = tensors.get(name)
    return isinstance(value, Tensor) and value.ndim == 2


def _refuse_unnamed(head: nn.Module, state_dict: dict, prefix: str) -> None:
    """Raise if a new matrix of a head fits one in the file.

    Else a trained classifier would be replaced by random numbers.
    """
    parts = f'{prefix}backbone.', f'{prefix}neck.'
    if not any(name.startswith(parts) for name in state_dict):
        return  # of another architecture, which the backbone refuses
    tensors = head.state_dict(prefix=f'{prefix}head.')
    tensors.pop(f'{prefix}head.weight', None)  # see _fit_linear
    new = [
        x for x in tensors if _is_matrix(tensors, x) and x not in state_dict
    ]
    for name in new:
        for other, value in state_dict.items():
            unused = other not in tensors and not other.startswith(parts)
            is_fitting = _is_matrix(state_dict, other)
            if unused and is_fitting and value.shape == tensors[name].shape:
                raise CheckpointError(
                    f'{other} {tuple(value.shape)} fits '
                    f'{type(head).__name__}, which calls it {name}; rename it '
                    'in the file, or remove it to start with a new classifier'
                )


def load_into_backbone(
    backbone, state_dict: dict, prefix: str, metadata: dict
) -> None:
    """Load hook for backbones: rename weights, adapt positions and tokens.

    Raises:
        CheckpointError: If weights from a file do not match the backbone.
    """
    unwrap_in_place(state_dict)
    left_out = rename_to_backbone(state_dict, prefix)
    resized, new = fit_positions(backbone, state_dict, prefix)
    resized += backbone.adapt_state_dict(state_dict, prefix)
    if 'source' not in metadata:  # not from a file: torch checks them
        return
    source, own = metadata['source'], backbone.state_dict()
    unfit, unused = compare_weights(own, state_dict, prefix)
    if 'pos_embed' in unfit:
        weights = below(state_dict, prefix)
        unfit['pos_embed'] += explain_rows(backbone, own, weights)
    _check_backbone(backbone, unfit, unused, source)
    report = source.begin()
    report.unused += left_out
    report.resized += resized
    fill_exactly(own, state_dict, prefix, report)
    report.new += new
    report.loaded = [key for key in report.loaded if key not in new]
    compare_heads(backbone, source)
    source.end()


def compare_weights(
    own: dict, weights: dict, prefix: str = ''
) -> tuple[dict, list]:
    """Return problems per missing or mismatched name, and unexpected names."""
    unfit = {}
    for name, value in own.items():
        came = weights.get(prefix + name)
        if not isinstance(came, Tensor):
            unfit[name] = 'is missing'
        elif came.shape != value.shape:
            found, expected = tuple(came.shape), tuple(value.shape)
            unfit[name] = f'has shape {found}, expected {expected}'
    unused = [name for name in below(weights, prefix) if name not in own]
    return unfit, unused


def wrong_parameters(backbone, unfit: dict, unused: list) -> list[str]:
    """List the tensors that do not match the backbone, with the reason.

    ``unfit`` and ``unused`` come from :func:`compare_weights`. Names in
    ``may_be_new`` and ``may_be_left`` are accepted.
    """
    may_be_new = backbone.may_be_new
    may_be_left = (*may_be_new, *backbone.may_be_left, *MAY_BE_LEFT)
    wrong = [
        f'{name} {why}'
        for name, why in unfit.items()
        if not name.startswith(may_be_new)
    ]
    return wrong + [
        f'{name} is unexpected'
        for name in unused
        if not name.startswith(may_be_left)
    ]


def _check_backbone(backbone, unfit: dict, unused: list, source) -> None:
    """Raise if weights have another architecture."""
    wrong = wrong_parameters(backbone, unfit, unused)
    if wrong:
        raise CheckpointError(
            f'{source.name} does not match {type(backbone).__name__} '
            f'(embedding dimension {backbone.embed_dims}, '
            f'{len(backbone.layers)} layers): {len(wrong)} parameters differ '
            f'({join_first(wrong, 6)}); first keys of the file: '
            f'{join_first(source.keys, 6) or "none"}; use weights of this '
            f'architecture, or set {backbone.shaped_by} as in the file'
        )


def fill_exactly(own: dict, weights: dict, prefix: str, report: LoadReport):
    """Drop unexpected weights and fill missing ones, in place.

    Args:
        own (dict): Model parameters.
        weights (dict): Weights from a file, with model names.
        prefix (str): Prefix in ``weights``.
        report (LoadReport): LoadReport to complete.
    """
    unfit, unused = compare_weights(own, weights, prefix)
    for name in unused:
        del weights[prefix + name]
    for name in unfit:
        weights[prefix + name] = own[name]
    report.unused += [prefix + name for name in unused]
    report.new += [prefix + name for name in unfit]
    report.loaded += [prefix + name for name in own if name not in unfit]


def load(
    model: nn.Module,
    checkpoint: str | PathLike | dict,
    strict: bool = True,
    may_be_new: Collection[str] = (),
) -> LoadReport:
    """Load a checkpoint into a model, and log what was loaded.

    Weights of a release are renamed, and positions resized. If the checkpoint
    is refused, the model is unchanged.

    Args:
        model (nn.Module): The model.
        checkpoint (str | Path | dict): An opened checkpoint, or what
            :func:`mmclca.checkpoints.opening.open_checkpoint` opens.
        strict (bool): Whether all parameters must be in the checkpoint and
            finite. False for a start of training: the head and other parts
            next to the backbone may be new. Defaults to True.
        may_be_new (Collection[str]): Parameters that may be missing with
            ``strict``. Defaults to ().

    Raises:
        CheckpointError: If the backbone differs.
        Error: If parameters are missing or not finite.
    """
    if not isinstance(checkpoint, dict):
        checkpoint = open_checkpoint(str(checkpoint))
    if not strict:
        weights = weights_of(checkpoint)
        source, reports = source_of(weights), []
        source.on_end = reports.append
        load_state_dict(model, weights, False, 'current')
        report = reports[0] if reports else LoadReport(source.name)
        report.log()
        return report
    fitted, report = load_copy(model, checkpoint, may_be_new)
    refuse_broken(fitted, report.source)
    weights = fitted.state_dict()
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if not weights[name].is_meta:
                tensor.copy_(weights[name])
    return report


def load_copy(
    model: nn.Module, checkpoint: dict, may_be_new: Collection[str] = ()
) -> tuple[nn.Module, LoadReport]:
    """Copy a model, with the tensors of a checkpoint as parameters.

    Tensors are only copied if their size or form changes.

    Raises:
        CheckpointError: If the backbone differs.
        Error: If parameters are missing, except for ``may_be_new``.
    """
    weights, reports = weights_of(checkpoint), []
    source = source_of(weights)
    source.on_end = reports.append
    fitted = _without_parameters(model)
    missing, unused = [], []
    try:
        missing, unused = fitted.load_state_dict(weights, False, assign=True)
    except CheckpointError:
        raise
    except RuntimeError:  # wrong sizes and types count as missing
        pass
    report = reports[0] if reports else LoadReport(source.name)
    own = fitted.state_dict()
    new = {*report.new, *missing, *(n for n in own if own[n].is_meta)}
    report.new = [name for name in own if name in new]
    report.loaded = [name for name in own if name not in new]
    report.unused += unused
    report.log()
    needed = dict(fitted.named_parameters()).keys() - {*may_be_new}
    _refuse([name for name in report.new if name in needed], source.name)
    return fitted, report


def refuse_broken(model: nn.Module, source: str) -> None:
    """Raise ``Error`` if a model would predict NaN.

    The error names tensors that are not finite and negative variances.
    """
    named = {n: x for n, x in model.state_dict().items() if not x.is_meta}
    broken = [name for name, tensor in named.items() if _broken(name, tensor)]
    if broken:
        raise Error(
            f'{source}: {len(broken)} tensors contain NaN, infinite or '
            f'complex numbers or negative variances ({join_first(broken, 6)})'
            '; damaged file or diverged training; use another checkpoint'
        )


def _broken(name: str, tensor: Tensor) -> bool:
    if tensor.is_complex():
        return True
    tensor = tensor.float()  # 8-bit types lack some functions
    negative = name.endswith('running_var') and (tensor < 0).any()
    return bool(negative or not tensor.isfinite().all())


def _without_parameters(model: nn.Module) -> nn.Module:
    """Return a copy with all parameters on the meta device."""
    blank = {
        id(p): nn.Parameter(p.detach().to('meta'), p.requires_grad)
        for p in model.parameters()
    }
    return deepcopy(model, blank)


def _refuse(wrong: list[str], source: str) -> None:
    """Raise if parameters are missing, as random ones predict noise."""
    if wrong:
        raise Error(
            f'{source}: {len(wrong)} parameters of the model are missing or '
            f'have another shape or type ({join_first(wrong, 6)}); use the '
            'config of its training and check model.head.num_classes'
        )
