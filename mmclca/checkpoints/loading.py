# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From the weights of any file to the parameters of a model.

``load_into_*`` are the load hooks of backbones and classifiers, by which every
way to load weights goes, mmengine's and mmpretrain's too; what comes from a
file is reported in one line of the log. :func:`load_trained` is for models
that are used: it takes all of their parameters from a file, or raises.
"""

from collections.abc import Collection
from copy import deepcopy

import torch
from mmengine.runner import load_state_dict
from torch import Tensor, nn

from mmclca.utils.messages import first_of

from .error import CheckpointError
from .opening import open_checkpoint
from .positions import below, explain_rows, fit_positions
from .releases import (
    Report,
    rename_to_backbone,
    rename_to_classifier,
    source_of,
    weights_of,
)
from .stored import compare_heads

# tokens of others, which a backbone without them does not need
MAY_BE_LEFT = ('cls_token', 'mask_token')


def load_into_classifier(state_dict: dict, prefix: str, metadata: dict):
    """Rename weights to a classifier's, its head's among them: a load hook."""
    left_out = rename_to_classifier(state_dict, prefix)
    if 'source' in metadata:
        metadata['source'].begin().unused += left_out


def load_into_backbone(
    backbone, state_dict: dict, prefix: str, metadata: dict
) -> None:
    """Load hook of a backbone, the last one: names, positions, CLR tokens.

    Args:
        backbone (ForeignWeights): The backbone that is to be loaded.
        state_dict (dict): See :func:`load_into_classifier`.
        prefix (str): What the names of the backbone begin with.
        metadata (dict): See :func:`load_into_classifier`.

    Raises:
        CheckpointError: If weights from a file are not of this backbone.
    """
    left_out = rename_to_backbone(state_dict, prefix)
    resized, new = fit_positions(backbone, state_dict, prefix)
    resized += backbone.adapt_state_dict(state_dict, prefix)
    if 'source' not in metadata:  # plain torch, as strict as ever
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
    """Return missing or mismatched parameters, and unexpected keys.

    Returns:
        tuple[dict, list]: The problem of each parameter by name, and the
        names that the module does not have.
    """
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

    Args:
        backbone (ForeignWeights): Defines ``may_be_new``, ``may_be_left``.
        unfit (dict): Mismatches from :func:`compare_weights`.
        unused (list): Unexpected keys from :func:`compare_weights`.
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
    """Refuse weights of another architecture."""
    wrong = wrong_parameters(backbone, unfit, unused)
    if wrong:
        raise CheckpointError(
            f'{source.name} does not match {type(backbone).__name__} '
            f'(embedding dimension {backbone.embed_dims}, '
            f'{len(backbone.layers)} layers): {len(wrong)} parameters differ '
            f'({first_of(wrong, 6)}); first keys of the file: '
            f'{first_of(source.keys, 6) or "none"}; use weights of this '
            f'architecture, or set {backbone.shaped_by} as in the file'
        )


def fill_exactly(own: dict, weights: dict, prefix: str, report: Report):
    """Make weights fit parameters exactly, in place, and report it.

    Args:
        own (dict): The parameters, which those that do not come keep.
        weights (dict): Of a file, by the names of the model.
        prefix (str): What these begin with.
        report (Report): Gets what was loaded, is new and is not used.
    """
    unfit, unused = compare_weights(own, weights, prefix)
    for name in unused:
        del weights[prefix + name]
    for name in unfit:
        weights[prefix + name] = own[name]
    report.unused += [prefix + name for name in unused]
    report.new += [prefix + name for name in unfit]
    report.loaded += [prefix + name for name in own if name not in unfit]


def load_checkpoint(model: nn.Module, name: str, strict: bool = False) -> dict:
    """Open a checkpoint and load its weights into a model.

    Parameters that the checkpoint lacks keep their values; for models that
    must be complete see :func:`load_trained`.

    Args:
        model (nn.Module): The model.
        name (str): See :func:`mmclca.checkpoints.opening.open_checkpoint`.
        strict (bool): Whether names must match exactly. Defaults to False.

    Returns:
        dict: The checkpoint.

    Raises:
        CheckpointError: If the backbone in it is another one.
    """
    checkpoint = open_checkpoint(name)
    load_state_dict(model, weights_of(checkpoint), strict, 'current')
    return checkpoint


def load_trained(
    model: nn.Module, checkpoint: str | dict, may_be_new: Collection[str] = ()
) -> Report:
    """Load a checkpoint that must hold all parameters of a model.

    A model whose checkpoint is refused stays as it was.

    Raises:
        CheckpointError: If the backbone in it is another one.
        ValueError: If parameters are missing, or see :func:`refuse_broken`.
    """
    if isinstance(checkpoint, str):
        checkpoint = open_checkpoint(checkpoint)
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
) -> tuple[nn.Module, Report]:
    """Return a copy of a model whose parameters are the tensors of a
    checkpoint.

    No tensor is read or copied but for another size or form.

    Raises:
        CheckpointError: If the backbone in it is another one.
        ValueError: If parameters are missing; names them.
    """
    weights, reports = weights_of(checkpoint), []
    source = source_of(weights)
    source.answer = reports.append
    fitted = _without_parameters(model)
    missing, unused = [], []
    try:
        missing, unused = fitted.load_state_dict(weights, False, assign=True)
    except CheckpointError:
        raise
    except RuntimeError:  # torch's, of sizes and types: they stay missing
        pass
    report = reports[0] if reports else Report(source.name)  # not ours
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
    """Refuse a model whose predictions would be NaN.

    Raises:
        ValueError: Names the parameters or buffers that are not finite, and
            negative variances.
    """
    named = {n: x for n, x in model.state_dict().items() if not x.is_meta}
    broken = [name for name, tensor in named.items() if _broken(name, tensor)]
    if broken:
        raise ValueError(
            f'{source}: {len(broken)} tensors contain NaN, infinite or '
            f'complex numbers or negative variances ({first_of(broken, 6)}); '
            'damaged file or diverged training; use another checkpoint'
        )


def _broken(name: str, tensor: Tensor) -> bool:
    if tensor.is_complex():
        return True
    tensor = tensor.float()  # smaller types cannot do it all
    negative = name.endswith('running_var') and (tensor < 0).any()
    return bool(negative or not tensor.isfinite().all())


def _without_parameters(model: nn.Module) -> nn.Module:
    """Return a copy whose parameters have a shape and no memory."""
    blank = {
        id(p): nn.Parameter(p.detach().to('meta'), p.requires_grad)
        for p in model.parameters()
    }
    return deepcopy(model, blank)


def _refuse(wrong: list[str], source: str) -> None:
    """Refuse missing parameters; a random head would predict noise."""
    if wrong:
        raise ValueError(
            f'{source}: {len(wrong)} parameters of the model are missing or '
            f'have another shape or type ({first_of(wrong, 6)}); use the '
            'config of its training and check model.head.num_classes'
        )
