# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""LoRA around a classifier, whose checkpoints are whole."""

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
    """mmpretrain's ``LoRAModel``, for classifiers with heads that train.

    `LoRA: Low-Rank Adaptation of Large Language Models`. mmpretrain's leaves
    all but its own parameters out of checkpoints, a new head and a reducer
    too. Here checkpoints are whole, by the names of the classifier, and
    :class:`SaveTrainableHook` makes them small; weights of a model without
    LoRA are loaded as it loads them. All outside of the backbone, a reducer
    and a cache train besides.

    Args:
        module (dict): Config of the classifier.
        targets (Sequence[dict]): ``type``, the name of linear layers or a
            regular expression for it; ``alpha``, ``rank`` and ``drop_rate``
            of these, where they are others.
        alpha (int): Scale of what is added. Defaults to 1.
        rank (int): Rank of what is added. Defaults to 4.
        drop_rate (float): Dropout before it. Defaults to 0.
        data_preprocessor (dict, optional): That of the classifier, where a
            config has it on its own. Defaults to None.

    Raises:
        ValueError: If no linear layer has such a name, or the classifier no
            backbone.
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
        """Freeze the backbone, but for what trains in every scope."""
        # when the model is built: an optimizer may leave out what is frozen
        tune_only(self, 'lora')

    @torch.no_grad()
    def merged(self) -> BaseModel:
        """Return the plain classifier with the same outputs in evaluation; a
        copy, of which all parameters may train."""
        model = deepcopy(self.module)
        for path, layer in [*model.named_modules()]:
            if isinstance(layer, LoRALinear):
                plain, up = layer.original_layer, layer.lora_up.weight
                plain.weight += layer.scaling * up @ layer.lora_down.weight
                model.set_submodule(path, plain)
        return model.requires_grad_(True)

    def __getattr__(self, name: str):
        """Ask the classifier, for its parts too."""
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
    """Return the plain classifier that LoRA is around.

    A config that ``mmpretrain.get_model`` gave it becomes that of the plain
    one.
    """
    plain, given = model.merged(), vars(model)
    if '_config' in given:
        config = deepcopy(given['_config'])
        own = config.model.get('data_preprocessor')
        config.model = config.model.module
        config.model.setdefault('data_preprocessor', own)
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
    """Take the weights of the linear layer that was here before."""
    for name in ('weight', 'bias'):
        if prefix + name in state_dict:
            value = state_dict.pop(prefix + name)
            state_dict[f'{prefix}original_layer.{name}'] = value
