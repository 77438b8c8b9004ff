# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A frozen classifier as a teacher: its config, weights and outputs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torch
from mmengine.config import Config
from mmpretrain.models import BaseClassifier, TIMMBackbone
from mmpretrain.models.utils import to_2tuple
from torch import Tensor, nn

from mmclca.building import config_errors
from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.gate.stored_config import (
    read_stored_classes,
    read_stored_config,
)
from mmclca.checkpoints.load import load
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.configs import open_config
from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer, suggest_choices
from mmclca.utils.random_state import preserve_random_state

from ..recording import as_reducible
from .layers import LayerDistillation
from .losses import Compared, standardize
from .teacher_images import convert_images, find_image_size, rescaling


class Teacher:
    """Frozen classifier that a student learns from.

    It is not a module: it does not appear in the parameters, state dict,
    optimizer and modes of the student, and copies of the student share it. It
    follows the device, dtype and autocast of the student's images. The images
    are normalized by its ``data_preprocessor`` and resized to the ``img_size``
    of its backbone, or to the size stored by timm, if any.

    The files are first read by :meth:`prepare`, before the first training
    iteration; the weights are copied to memory with the first batch.

    Args:
        model (str | dict, optional): Classifier config of mmpretrain, timm
            (``TimmClassifier``, ``TIMMBackbone``) or mmclca; or path of a
            config file with such a ``model``. None: the config in the
            checkpoint.
        checkpoint (str): Path or URL of the trained weights, or a folder
            written by ``mmclca fit``; for a ``TIMMBackbone`` also weights with
            timm's names, such as ``timm://NAME``.
        loss (dict | Sequence[dict]): One or more configs of
            :class:`DeiTDistillation`, :class:`LogitDistillation` or
            :class:`TokenDistillation`.
        img_size (int, optional): Input size of the teacher in pixels. Defaults
            to None: the size of its backbone, or else of the student's images.

    Raises:
        Error: If a loss or the size is not allowed, no loss is given, or
            two have one type.
    """

    compares_layers = False  # True for encoders

    def __init__(
        self,
        model: str | dict | None,
        checkpoint: str,
        loss: dict | Sequence[dict],
        img_size: int | None = None,
    ):
        configs = [loss] if isinstance(loss, dict) else loss
        self.losses = [MODELS.build(config) for config in configs]
        _check_losses(self.losses, self.compares_layers)
        if img_size is not None:
            check_integer(img_size=img_size)
        self.config, self.checkpoint = model, checkpoint
        self.img_size = img_size
        self.compares_tokens = any(o.compares_tokens for o in self.losses)
        if img_size and self.compares_tokens:
            raise Error(
                'teacher: TokenDistillation compares patches of the same '
                f'images; remove img_size={img_size}'
            )
        self.model: Any = None
        self.classes = self.order = self.kept = None
        self.is_read = False

    def prepare(self, student: nn.Module) -> None:
        """Build and check the teacher, unless already done.

        Args:
            student (DistilledClassifier): The student.

        Raises:
            Error: If the teacher is unknown, not a classifier or does not
                fit the student; or if its weights cannot be read, are
                incomplete or not finite.
        """
        if self.model is not None:
            return
        with _teacher_errors(self.config):
            config = self.config
            if isinstance(config, str):
                config = _get_classifier(open_config(config))
            checkpoint = open_checkpoint(self.checkpoint, mapped=True)
            config = config or _get_classifier(read_stored_config(checkpoint))
            with preserve_random_state():  # building draws random numbers
                model = self._build(config, student)
            load(model, _rename_for_timm(model, checkpoint), assign=True)
        self.classes = read_stored_classes(checkpoint)
        self.model = model.eval().requires_grad_(False)

    def match_names(self, names: Sequence[str] | None) -> None:
        """Reorder the teacher's classes to match the student's.

        Args:
            names (Sequence[str], optional): Training classes.

        Raises:
            Error: If the teacher lacks one of the classes.
        """
        if not (self.classes and names) or list(self.classes) == list(names):
            return
        missing = [name for name in names if name not in self.classes]
        if missing:
            raise Error(
                'teacher: it does not know a class of the training images, '
                f'{suggest_choices(missing[0], self.classes)}'
            )
        self.order = [self.classes.index(name) for name in names]

    def _build(self, config: dict, student: nn.Module) -> nn.Module:
        with config_errors():
            model = MODELS.build(config)
        if not isinstance(model, BaseClassifier):
            raise Error(f'{type(model).__name__} is not a classifier')
        self.rescale = rescaling(student, model)
        # token losses need equal patches, so images are not resized
        teacher_size = None if self.compares_tokens else find_image_size(model)
        self.size = self.img_size or teacher_size
        if self.compares_tokens:
            _check_tokens(model, student)
        self._check_output(model, student, find_image_size(student))
        return model

    def _check_output(self, model, student, size) -> None:
        """Check image size and number of classes without data.

        The size is unknown before the first batch if the student accepts any.
        """
        size = self.size or size
        height, width = to_2tuple(size or 224)
        blank = torch.zeros(1, 3, height, width, device='meta')
        try:
            scores = deepcopy(model).eval().to('meta')(blank)
        except (AssertionError, RuntimeError, TypeError) as error:
            if size is None:
                return
            first = str(error).strip().partition('\n')[0]
            raise Error(
                f'images of {(height, width)} px are not supported ({first}); '
                'set img_size of the teacher'
            ) from error
        if not isinstance(scores, Tensor):
            raise Error(f'{type(model).__name__} has no head')
        ours = student.head.num_classes
        if scores.shape != (1, ours):
            theirs = ' x '.join(map(str, scores.shape[1:]))
            raise Error(
                f'head.num_classes is {theirs}, the student has {ours} classes'
            )

    def __deepcopy__(self, memo) -> 'Teacher':
        return self

    def teach(self, inputs: Tensor, student: nn.Module, **outputs) -> dict:
        """Compute the distillation losses by name.

        Args:
            inputs (Tensor): Images (B, 3, H, W), as passed to the student.
            student (DistilledClassifier): The student.
            **outputs: Outputs of the student: see :class:`Compared`; or
                ``ours``, a :class:`LayerFeatures`.

        Raises:
            Error: See :meth:`prepare`.
        """
        self.prepare(student)
        if not self.is_read:
            with _teacher_errors(self.config):
                self._check_output(self.model, student, inputs.shape[2:])
            # copy the memory-mapped parameters of the file
            self.model, self.is_read = deepcopy(self.model), True
        losses: dict[str, Tensor] = {}
        for named_losses in self._losses(inputs, student, **outputs):
            losses |= named_losses
        return losses

    def _losses(self, inputs: Tensor, student, **outputs) -> list[dict]:
        scores, patches = self.compute_outputs(inputs, outputs['tokens'])
        compared = Compared(student.backbone, scores, patches, **outputs)
        return [loss(compared) for loss in self.losses]

    @torch.no_grad()
    def compute_outputs(
        self, inputs: Tensor, tokens: Any = None
    ) -> tuple[Tensor, Tensor | None]:
        """Return class scores, and patch tokens (B, P, C) for token losses."""
        model, x = self.match_images(inputs), self.convert(inputs)
        order = slice(None) if self.order is None else self.order
        if not self.compares_tokens:
            return model(x)[:, order], None
        feats, teacher_tokens = model.backbone.forward_tokens(x)
        feats = model.neck(feats) if model.with_neck else feats
        patches = teacher_tokens.after_prefix[:, : tokens.num_patches]
        if not model.backbone.final_norm:
            patches = standardize(patches)
        return model.head(feats)[:, order], patches

    def match_images(self, inputs: Tensor) -> BaseClassifier:
        """Return the model with the device and dtype of the images.

        The original weights are kept, so that they are rounded only once.
        """
        if next(self.model.parameters()).dtype != inputs.dtype:
            self.kept = self.kept or deepcopy(self.model.state_dict())
            self.model.to(inputs.dtype).load_state_dict(self.kept)
        return self.model.to(inputs)

    def convert(self, inputs: Tensor) -> Tensor:
        """Normalize and resize student images for the teacher."""
        return convert_images(inputs, self.rescale, self.size)


def _check_losses(losses: list[nn.Module], compares_layers: bool) -> None:
    """Raise if a loss does not suit the teacher or two have one type."""
    for loss in losses:
        if isinstance(loss, LayerDistillation) != compares_layers:
            raise Error(
                f'teacher: {type(loss).__name__} needs '
                f'teacher=dict({"model" if compares_layers else "backbone"}'
                '=...)'
            )
    compared = [(type(x), x.layers if compares_layers else ()) for x in losses]
    if not compared or len({*compared}) < len(compared):
        raise Error(
            f'teacher: {len(losses)} losses of {len({*compared})} kinds; '
            'use at least one loss, and each kind once'
        )


def _check_tokens(model: BaseClassifier, student: BaseClassifier) -> None:
    """Raise if the tokens of the teacher do not match the student's."""
    model.backbone = as_reducible(model.backbone)
    if model.backbone.reduces:
        raise Error(
            f'{type(model.backbone.reducer).__name__} reduces the tokens of '
            'the teacher; remove its reducer'
        )
    theirs, ours = (
        (backbone.embed_dims, *backbone.stride)
        for backbone in (model.backbone, student.backbone)
    )
    if theirs != ours:
        raise Error(
            'TokenDistillation needs equal embed_dims and patch_size, but the '
            f'teacher has {theirs} and the student {ours}'
        )


def _rename_for_timm(model: nn.Module, checkpoint: Checkpoint) -> Checkpoint:
    """Rename weights of timm for mmpretrain's ``TIMMBackbone``."""
    backbones = [m for m in model.children() if isinstance(m, TIMMBackbone)]
    weights = checkpoint.weights
    if not backbones or any(key.startswith('backbone.') for key in weights):
        return checkpoint
    last = backbones[0].timm_model.default_cfg['classifier']
    named = {
        f'head.fc.{key.rpartition(".")[2]}'
        if key.rpartition('.')[0] == last
        else f'backbone.timm_model.{key}': value
        for key, value in weights.items()
    }
    return Checkpoint.from_weights(named, checkpoint.name)


@contextmanager
def _teacher_errors(config: str | dict | None) -> Iterator[None]:
    """Begin errors with 'teacher' and the path of its config, in one line."""
    try:
        yield
    except (Error, OSError) as error:
        message = ' '.join(str(error).split())
        if isinstance(config, str) and config not in message:
            message = f'{config}: {message}'
        raise Error(f'teacher: {message}') from error


def _get_classifier(config: Config) -> dict:
    if 'model' not in config:
        raise Error('the config has no model; use a classifier config')
    model = config.model
    model.setdefault('data_preprocessor', config.get('data_preprocessor'))
    return model
