# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load a checkpoint into a model.

:func:`load` opens it, renames and adapts its weights to the model, compares
them, fills the model and reports. Names change in :mod:`.rename` and
:mod:`.linear_head`, shapes in ``adapt_state_dict`` of the model's parts.
"""

import logging
from collections.abc import Collection
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from os import PathLike
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from mmclca.utils.messages import join_first
from mmclca.utils.wrappers import inner_model

from .attention_heads import warn_other_heads
from .checkpoint import Checkpoint
from .compare import refuse_broken, refuse_missing
from .error import CheckpointError
from .linear_head import fit_linear_head, refuse_unnamed
from .opening import open_checkpoint
from .rename import keep_backbone
from .report import LoadReport


@runtime_checkable
class AdaptsWeights(Protocol):
    """Part of a model that fits weights to its sizes."""

    def adapt_state_dict(
        self, weights: dict[str, Tensor], prefix: str, report: LoadReport
    ) -> None:
        """Change the weights under a prefix, in place; complete the report."""


@runtime_checkable
class ReleaseBackbone(AdaptsWeights, Protocol):
    """Backbone that loads the weights of releases."""

    has_weights: bool  # whether complete weights were loaded

    def rename_state_dict(self, weights: dict, prefix: str) -> list[str]:
        """Rename to the names of a classifier; return dropped names."""

    def list_mismatches(self, weights: dict, prefix: str) -> list[str]:
        """List the differing parameters, with the reason."""

    def refuse_weights(
        self, source: str, file_names: list[str], mismatches: list[str]
    ) -> CheckpointError:
        """Return the error for weights of another network."""

    def check_part(self, names: list[str]) -> None:
        """Raise for a part of a network without the other weights."""


@dataclass
class AdaptedWeights:
    """Weights with the names and sizes of a model, not yet loaded.

    Args:
        checkpoint (Checkpoint): The opened checkpoint.
        weights (dict[str, Tensor]): The renamed and resized weights.
        report (LoadReport): The report so far.
    """

    checkpoint: Checkpoint
    weights: dict[str, Tensor]
    report: LoadReport


def load(
    model: nn.Module,
    checkpoint: str | PathLike | dict,
    strict: bool = True,
    may_be_new: Collection[str] = (),
    assign: bool = False,
) -> LoadReport:
    """Load a checkpoint into a model, and log what was loaded.

    Weights of a release are renamed, and positions resized. If the checkpoint
    is refused, the model is unchanged.

    Args:
        model (nn.Module): The model.
        checkpoint (str | Path | dict): An opened checkpoint, or what
            :func:`mmclca.checkpoints.opening.open_checkpoint` opens.
        strict (bool): Whether all parameters must be in the checkpoint. False
            for a start of training: the head and other parts next to the
            backbone may be new. Defaults to True.
        may_be_new (Collection[str]): Parameters that may be missing with
            ``strict``. Defaults to ().
        assign (bool): Whether the model gets the tensors of the checkpoint
            instead of copies. Defaults to False.

    Raises:
        CheckpointError: If the backbone differs, or no parameter fits.
        Error: If parameters are missing, or tensors are not finite.
    """
    return fill(model, adapt(model, checkpoint), strict, may_be_new, assign)


def adapt(
    model: nn.Module, checkpoint: str | PathLike | dict
) -> AdaptedWeights:
    """Open a checkpoint, and rename and resize its weights for a model.

    The first half of :func:`load`.

    Raises:
        CheckpointError: If a layer of the classifier is left over.
    """
    if isinstance(checkpoint, dict):
        checkpoint = Checkpoint.from_contents(checkpoint, 'the checkpoint')
    else:
        checkpoint = open_checkpoint(str(checkpoint))
    model, weights = _find_classifier(model), dict(checkpoint.weights)
    report = LoadReport(checkpoint.name, checkpoint.file_names)
    backbone = _get_backbone(model)
    if backbone is not None:
        report.unused += backbone.rename_state_dict(weights, '')
        if backbone is model:
            keep_backbone(weights)
        elif isinstance(model.head, nn.Module):
            fit_linear_head(model.head, weights, 'head.')
    for name, part in model.named_modules():
        if isinstance(part, AdaptsWeights):
            part.adapt_state_dict(weights, f'{name}.' if name else '', report)
    return AdaptedWeights(checkpoint, weights, report)


def fill(
    model: nn.Module,
    adapted: AdaptedWeights,
    strict: bool = True,
    may_be_new: Collection[str] = (),
    assign: bool = False,
) -> LoadReport:
    """Compare adapted weights with a model, load and report them.

    The second half of :func:`load`.
    """
    model, report = _find_classifier(model), adapted.report
    checkpoint, weights = adapted.checkpoint, adapted.weights
    backbone = _get_backbone(model)
    if backbone is not None:
        prefix = '' if backbone is model else 'backbone.'
        mismatches = backbone.list_mismatches(weights, prefix)
        if mismatches:
            raise backbone.refuse_weights(
                checkpoint.name, checkpoint.file_names, mismatches
            )
        warn_other_heads(backbone, checkpoint)
        if backbone is not model and isinstance(model.head, nn.Module):
            refuse_unnamed(model.head, weights, '')
    copy = _copy_with(model, weights)
    _complete(report, copy, model, weights)
    # a start of training with a new head is usual, but may be a mistake
    report.log(logging.INFO if strict or not report.new else logging.WARNING)
    if strict:
        refuse_missing(model, report.new, may_be_new, checkpoint.name)
    elif not report.loaded:
        raise CheckpointError(
            f'{checkpoint.name} has no parameter of {type(model).__name__}; '
            'use weights of this model; first keys of the file: '
            f'{join_first(checkpoint.file_names, 6) or "none"}'
        )
    tensors = {k: x for k, x in copy.state_dict().items() if not x.is_meta}
    refuse_broken(
        {name: x for name, x in tensors.items() if name in weights},
        checkpoint.name,
    )
    if backbone is not None:
        backbone.has_weights = True
    if assign:
        model.load_state_dict(tensors, strict=False, assign=True)
    else:
        with torch.no_grad():
            for name, tensor in model.state_dict().items():
                if name in tensors:
                    tensor.copy_(tensors[name])
    return report


def _find_classifier(model: nn.Module) -> nn.Module:
    """Return the classifier or backbone inside wrappers, else the model.

    LoRA, retrieval and test augmentation wrap a classifier.
    """
    model = inner_model(model)
    parameters = len([*model.parameters()])
    for part in model.modules():
        if _get_backbone(part) is not None:
            is_whole = len([*part.parameters()]) == parameters
            return part if is_whole else model
    return model


def _get_backbone(model: nn.Module) -> ReleaseBackbone | None:
    """Return the backbone that loads releases: the model, or its part."""
    if isinstance(model, ReleaseBackbone):
        return model
    part = dict(model.named_children()).get('backbone')
    return part if isinstance(part, ReleaseBackbone) else None


def _copy_with(model: nn.Module, weights: dict[str, Tensor]) -> nn.Module:
    """Copy a model with weights as its parameters, others on ``meta``.

    Tensors of the model are not copied. Load hooks of parts to which the
    weights are adapted have nothing left to do.
    """
    blank = {
        id(p): nn.Parameter(p.detach().to('meta'), p.requires_grad)
        for p in model.parameters()
    }
    copy = deepcopy(model, blank)
    # few parts have hooks, and to check a protocol is slow before Python 3.12
    hooked = [x for x in copy.modules() if x._load_state_dict_pre_hooks]
    for part in hooked:
        is_adapted = isinstance(part, AdaptsWeights)
        if is_adapted or _get_backbone(part) is not None:
            part._load_state_dict_pre_hooks.clear()
    with suppress(RuntimeError):  # wrong sizes and types count as missing
        copy.load_state_dict(weights, strict=False, assign=True)
    return copy


def _complete(
    report: LoadReport,
    copy: nn.Module,
    model: nn.Module,
    weights: dict[str, Tensor],
) -> None:
    """List loaded, new and unused tensors; the backbone's are the last."""
    tensors = copy.state_dict()
    buffers = dict(model.named_buffers())

    def is_new(name: str) -> bool:
        if name in buffers:
            value = weights.get(name)
            return value is None or value.shape != buffers[name].shape
        return tensors[name].is_meta

    adapted = {*report.new}
    new = [x for x in tensors if x not in adapted and is_new(x)]
    unused = [name for name in weights if name not in tensors]
    for names in (new, unused):
        names.sort(key=lambda name: name.startswith('backbone.'))
    report.new[:0] = new
    report.unused += unused
    skipped = {*report.new}
    report.loaded += [name for name in tensors if name not in skipped]
