# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""LoRA around a classifier, with complete checkpoints."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from mmengine.model import BaseModel, BaseModule
from mmpretrain.models.peft import LoRAModel as _LoRAModel
from mmpretrain.models.peft.lora import LoRALinear
from torch import nn

from mmclca.registry import MODELS

from .tuning import tune_only


@MODELS.register_module()
class LoRAModel(_LoRAModel):
    """mmpretrain's ``LoRAModel`` for classifiers with trainable heads.

    `LoRA: Low-Rank Adaptation of Large Language Models`. mmpretrain saves only
    LoRA's parameters, without a new head or reducer. Here checkpoints are
    complete and use the classifier's parameter names;
    :class:`SaveTrainableHook` makes them small. Weights of a model without
    LoRA load as in that model. Parameters outside the backbone, reducers and
    caches are trained, too.

    Args:
        module (dict): Config of the classifier.
        targets (Sequence[dict]): One dict per target: ``type``, the name of
            linear layers or a regular expression, and optionally ``alpha``,
            ``rank`` and ``drop_rate``.
        alpha (int): Scale of the low-rank update. Defaults to 1.
        rank (int): Rank of the update. Defaults to 4.
        drop_rate (float): Dropout before the update. Defaults to 0.
        data_preprocessor (dict, optional): Preprocessor of the classifier, if
            the config defines it outside ``module``. Defaults to None.

    Raises:
        ValueError: If no linear layer matches ``targets``, or the classifier
            lacks a backbone.
    """

    def __init__(
        self,
        module: dict,
        targets: Sequence[dict],
        alpha: int = 1,
        rank: int = 4,
        drop_rate: float = 0.0,
        data_preprocessor: dict | None = None,
    ):
        super(_LoRAModel, self).__init__()
        if data_preprocessor is not None:
            module = dict(data_preprocessor=data_preprocessor, **module)
        self.module = MODELS.build(module)
        if not next(self.module.parameters()).is_meta:
            # LoRA's B starts at zero; do not load the teacher yet
            BaseModule.init_weights(self.module)
        self.alpha, self.rank, self.drop_rate = alpha, rank, drop_rate
        self.targets, self.applied = targets, False
        self.apply_lora()
        parts = dict(self.module.named_children())
        if not self.applied or 'backbone' not in parts:
            raise ValueError(
                f'targets={targets!r} matches no linear layer of the backbone '
                f"in {type(self.module).__name__}; use [dict(type='.*qkv')]"
            )
        self._set_lora_trainable()
        self._register_state_dict_hooks()

    def _set_lora_trainable(self) -> None:
        """Freeze the backbone except LoRA's parameters, reducer and cache."""
        # at construction, because optimizers may skip frozen parameters
        tune_only(self, 'lora')

    @torch.no_grad()
    def merged(self) -> BaseModel:
        """Return a plain trainable copy with equal outputs in evaluation."""
        model = deepcopy(self.module)
        for path, layer in [*model.named_modules()]:
            if isinstance(layer, LoRALinear):
                plain, up = layer.original_layer, layer.lora_up.weight
                plain.weight += layer.scaling * up @ layer.lora_down.weight
                model.set_submodule(path, plain)
        return model.requires_grad_(True)

    def __getattr__(self, name: str):
        """Look up missing attributes in the classifier."""
        try:
            return nn.Module.__getattr__(self, name)
        except AttributeError:
            return getattr(nn.Module.__getattr__(self, 'module'), name)

    def _register_state_dict_hooks(self) -> None:
        self._register_state_dict_hook(_without_prefix)
        self._register_load_state_dict_pre_hook(_with_prefix)
        for layer in self.modules():
            if isinstance(layer, LoRALinear):
                layer._register_load_state_dict_pre_hook(_to_original)


def without_lora(model: LoRAModel) -> BaseModel:
    """Merge LoRA into the weights and return a plain classifier.

    A config attached by ``mmpretrain.get_model`` is converted, too.

    Args:
        model (LoRAModel): A classifier with LoRA.

    Returns:
        BaseModel: A copy without LoRA.
    """
    plain, given = model.merged(), vars(model)
    if '_config' in given:
        config = deepcopy(given['_config'])
        preprocessor = config.model.get('data_preprocessor')
        config.model = config.model.module
        config.model.setdefault('data_preprocessor', preprocessor)
        plain._config, plain._dataset_meta = config, given['_dataset_meta']
    return plain


def _without_prefix(model, state_dict, prefix, metadata) -> None:
    for key in [k for k in state_dict if k.startswith(f'{prefix}module.')]:
        state_dict[prefix + key[len(prefix) + 7 :]] = state_dict.pop(key)


def _with_prefix(state_dict, prefix, *_) -> None:
    for key in [k for k in state_dict if k.startswith(prefix)]:
        name = f'{prefix}module.{key[len(prefix) :]}'
        state_dict[name] = state_dict.pop(key)


def _to_original(state_dict, prefix, *_) -> None:
    """Load hook: rename plain linear weights to ``original_layer``."""
    for name in ('weight', 'bias'):
        if prefix + name in state_dict:
            value = state_dict.pop(prefix + name)
            state_dict[f'{prefix}original_layer.{name}'] = value
