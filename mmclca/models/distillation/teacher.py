# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A frozen teacher: its files, and how it sees the images of a student."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy

import torch
from mmengine.config import Config
from mmpretrain.models import BaseClassifier, TIMMBackbone
from mmpretrain.models.utils import to_2tuple
from torch import Tensor, nn

from mmclca.checkpoints.loading import load_copy, refuse_broken
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.checkpoints.releases import name_source, source_of, weights_of
from mmclca.checkpoints.stored import stored_classes, stored_config
from mmclca.registry import MODELS
from mmclca.utils.messages import integer, not_one_of
from mmclca.utils.random_state import same_random_state

from ..recording import as_reducible
from .layers import LayerDistillation
from .losses import Compared, standardize
from .teacher_images import convert_images, image_size_of, rescaling


class Teacher:
    """A frozen classifier that a student learns from.

    It is no module: it has no part in the parameters, the state dict, the
    optimizer and the modes of the student, and copies of the student share
    it. It follows the images of the student: their device, their type, and
    autocast. It sees what the student sees, normalized as its own
    ``data_preprocessor`` says and resized to the ``img_size`` of its
    backbone, or to the size that timm gives one, where it has one.

    Its files are not asked for before :meth:`prepare`, which a training calls
    before its first iteration; its weights are read when the first batch
    needs them.

    Args:
        model (str | dict, optional): Config of a classifier, of mmpretrain,
            of timm (``TimmClassifier``, ``TIMMBackbone``) or of ours; or the
            path of a config file that has it as ``model``. None: the one in
            the checkpoint.
        checkpoint (str): Path or address of its trained weights, or a folder
            that ``mmclca fit`` wrote; for a ``TIMMBackbone`` also by timm's
            names, as ``timm://NAME`` has.
        loss (dict | Sequence[dict]): Config of :class:`DeiTDistillation`,
            :class:`LogitDistillation` or :class:`TokenDistillation`, or
            several.
        img_size (int, optional): Side of the images that it sees. Defaults
            to None: that of its backbone, or else what the student sees.

    Raises:
        ValueError: If a loss or the size is not allowed, if there is no loss,
            or two of one kind.
    """

    compares_layers = False  # what an encoder is asked for

    def __init__(
        self,
        model: str | dict | None,
        checkpoint: str,
        loss: dict | Sequence[dict],
        img_size: int | None = None,
    ):
        listed = [loss] if isinstance(loss, dict) else loss
        self.losses = [MODELS.build(one) for one in listed]
        _check_kind(self.losses, self.compares_layers)
        if img_size is not None:
            integer(img_size=img_size)
        self.config, self.checkpoint = model, checkpoint
        self.img_size = img_size
        self.compares_tokens = any(o.compares_tokens for o in self.losses)
        if img_size and self.compares_tokens:
            raise ValueError(
                'teacher: TokenDistillation compares patches of the same '
                f'images; remove img_size={img_size}'
            )
        self.model = self.classes = self.order = self.kept = None
        self.is_read = False

    def prepare(self, student: nn.Module) -> None:
        """Build and check the teacher, unless that is done.

        Args:
            student (DistilledClassifier): The student.

        Raises:
            ValueError: If the teacher is unknown, no classifier, or does not
                fit the student; if its weights cannot be opened, or are not
                all of it.
        """
        if self.model is not None:
            return
        with _one_line(self.config):
            config = self.config
            if isinstance(config, str):
                config = _classifier_in(Config.fromfile(config))
            checkpoint = open_checkpoint(self.checkpoint, mapped=True)
            config = config or _classifier_in(stored_config(checkpoint))
            with same_random_state():  # a run with it is one without it
                model = self._build(config, student)
            weights = _by_own_names(model, weights_of(checkpoint))
            model, _ = load_copy(model, weights)
        self.classes = stored_classes(checkpoint)
        self.model = model.eval().requires_grad_(False)

    def match_names(self, names: Sequence[str] | None) -> None:
        """Sort the teacher's classes in the order of the student's.

        Args:
            names (Sequence[str], optional): Classes of the training images.

        Raises:
            ValueError: If the teacher lacks one of the classes.
        """
        if not (self.classes and names) or list(self.classes) == list(names):
            return
        missing = [name for name in names if name not in self.classes]
        if missing:
            raise ValueError(
                'teacher: it does not know a class of the training images, '
                f'{not_one_of(missing[0], self.classes)}'
            )
        self.order = [self.classes.index(name) for name in names]

    def _build(self, config: dict, student: nn.Module) -> nn.Module:
        model = MODELS.build(config)
        if not isinstance(model, BaseClassifier):
            raise ValueError(f'{type(model).__name__} is not a classifier')
        self.rescale = rescaling(student, model)
        # tokens are compared patch by patch, on the images of the student
        own = None if self.compares_tokens else image_size_of(model)
        self.size = self.img_size or own
        if self.compares_tokens:
            _check_tokens(model, student)
        self._check_answer(model, student, image_size_of(student))
        return model

    def _check_answer(self, model, student: nn.Module, size) -> None:
        """Check the image size and number of classes without data.

        The size is unknown before the first batch if the student accepts any.
        """
        size = self.size or size
        sides = to_2tuple(size or 224)
        blank = torch.zeros(1, 3, *sides, device='meta')
        try:
            scores = deepcopy(model).eval().to('meta')(blank)
        except (AssertionError, RuntimeError, TypeError) as error:
            if size is None:
                return
            first = str(error).strip().partition('\n')[0]
            raise ValueError(
                f'images of {sides} px are not supported ({first}); set '
                'img_size of the teacher'
            ) from error
        if not isinstance(scores, Tensor):
            raise ValueError(f'{type(model).__name__} has no head')
        ours = student.head.num_classes
        if scores.shape != (1, ours):
            theirs = ' x '.join(map(str, scores.shape[1:]))
            raise ValueError(
                f'head.num_classes is {theirs}, the student has {ours} classes'
            )

    def _read(self) -> None:
        """Copy the parameters, still parts of a file, to memory."""
        refuse_broken(self.model, f'teacher: {self.checkpoint}')
        self.model, self.is_read = deepcopy(self.model), True

    def __deepcopy__(self, memo) -> 'Teacher':
        return self

    def teach(self, inputs: Tensor, student: nn.Module, **answers) -> dict:
        """Compute the losses by name.

        Args:
            inputs (Tensor): Images (B, 3, H, W), as the student sees them.
            student (DistilledClassifier): The student.
            **answers: What it makes of them: see :class:`Compared`, or
                :class:`LayerFeatures`, as ``ours``.

        Raises:
            ValueError: See :meth:`prepare`; with the first batch, if weights
                of the teacher are not finite.
        """
        self.prepare(student)
        if not self.is_read:
            with _one_line(self.config):
                self._check_answer(self.model, student, inputs.shape[2:])
            self._read()
        found = self._losses(inputs, student, **answers)
        return {name: loss for one in found for name, loss in one.items()}

    def _losses(self, inputs: Tensor, student, **answers) -> list[dict]:
        theirs = self.answer(inputs, answers['tokens'])
        seen = Compared(student.backbone, *theirs, **answers)
        return [loss(seen) for loss in self.losses]

    @torch.no_grad()
    def answer(self, inputs: Tensor, tokens=None):
        """Class scores; with tokens, the last patches (B, P, C) too."""
        model, x = self.like(inputs), self.view(inputs)
        order = slice(None) if self.order is None else self.order
        if not self.compares_tokens:
            return model(x)[:, order], None
        feats, own = model.backbone.forward_tokens(x)
        feats = model.neck(feats) if model.with_neck else feats
        patches = own.body[:, : tokens.num_patches]
        if not model.backbone.final_norm:
            patches = standardize(patches)
        return model.head(feats)[:, order], patches

    def like(self, inputs: Tensor) -> nn.Module:
        """Return the model on the device of images, in their type, rounded
        once from the weights as they were read."""
        if next(self.model.parameters()).dtype != inputs.dtype:
            self.kept = self.kept or deepcopy(self.model.state_dict())
            self.model.to(inputs.dtype).load_state_dict(self.kept)
        return self.model.to(inputs)

    def view(self, inputs: Tensor) -> Tensor:
        """Normalize and resize images of the student for the teacher."""
        return convert_images(inputs, self.rescale, self.size)


def _check_kind(losses: list[nn.Module], of_layers: bool) -> None:
    """Refuse losses that this kind of teacher does not support."""
    for loss in losses:
        if isinstance(loss, LayerDistillation) != of_layers:
            raise ValueError(
                f'teacher: {type(loss).__name__} needs '
                f'teacher=dict({"model" if of_layers else "backbone"}=...)'
            )
    kinds = [(type(x), *(x.layers if of_layers else ())) for x in losses]
    if not kinds or len({*kinds}) < len(kinds):
        raise ValueError(
            f'teacher: {len(kinds)} losses of {len({*kinds})} kinds; use at '
            'least one loss, and each kind once'
        )


def _check_tokens(model: nn.Module, student: nn.Module) -> None:
    """Refuse a teacher whose tokens do not match the student's."""
    model.backbone = as_reducible(model.backbone)
    if model.backbone.reduces:
        raise ValueError(
            f'{type(model.backbone.reducer).__name__} reduces the tokens of '
            'the teacher; remove its reducer'
        )
    theirs, ours = (
        (one.backbone.embed_dims, *one.backbone.stride)
        for one in (model, student)
    )
    if theirs != ours:
        raise ValueError(
            'TokenDistillation needs equal embed_dims and patch_size, but the '
            f'teacher has {theirs} and the student {ours}'
        )


def _by_own_names(model: nn.Module, weights: dict) -> dict:
    """Rename weights of timm for mmpretrain's wrapper of its backbones."""
    backbones = [m for m in model.children() if isinstance(m, TIMMBackbone)]
    if not backbones or any(key.startswith('backbone.') for key in weights):
        return weights
    last = backbones[0].timm_model.default_cfg['classifier']
    named = {
        f'head.fc.{key.rpartition(".")[2]}'
        if key.rpartition('.')[0] == last
        else f'backbone.timm_model.{key}': value
        for key, value in weights.items()
    }
    return name_source(named, source_of(weights).name)


@contextmanager
def _one_line(config: str | dict | None) -> Iterator[None]:
    """Raise errors of the teacher's config as one line."""
    try:
        yield
    except Exception as error:  # a config may raise any type
        said = ' '.join(str(error).split())
        if isinstance(config, str) and config not in said:
            said = f'{config}: {said}'
        raise ValueError(f'teacher: {said}') from error


def _classifier_in(config: Config) -> dict:
    if 'model' not in config:
        raise ValueError('the config has no model; use a classifier config')
    model = config.model
    model.setdefault('data_preprocessor', config.get('data_preprocessor'))
    return model
