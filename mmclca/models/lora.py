# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""LoRA around a classifier, whose checkpoints are whole."""

from mmpretrain.models.peft import LoRAModel as _LoRAModel
from mmpretrain.models.peft.lora import LoRALinear

from mmclca.registry import MODELS


@MODELS.register_module()
class LoRAModel(_LoRAModel):
    """mmpretrain's ``LoRAModel``, for classifiers with heads that train.

    `LoRA: Low-Rank Adaptation of Large Language Models`. mmpretrain's leaves
    all but its own parameters out of checkpoints, a new head and a reducer
    too. Here checkpoints are whole, by the names of the classifier, and
    :class:`SaveTrainableHook` makes them small; weights of a model without
    LoRA are loaded as it loads them. With ``TuningScopeHook(scope='lora')``
    the head and a reducer train besides.

    Args:
        module (dict): Config of the classifier.
        data_preprocessor (dict, optional): That of the classifier, where a
            config has it on its own. Defaults to None.
        **settings: ``alpha``, ``rank``, ``drop_rate`` and ``targets`` of
            mmpretrain's.
    """

    def __init__(self, module, data_preprocessor=None, **settings):
        if data_preprocessor is not None:
            module = dict(data_preprocessor=data_preprocessor, **module)
        super().__init__(module, **settings)

    def _register_state_dict_hooks(self) -> None:
        self._register_state_dict_hook(_without_prefix)
        self._register_load_state_dict_pre_hook(_with_prefix)
        for layer in self.modules():
            if isinstance(layer, LoRALinear):
                layer._register_load_state_dict_pre_hook(_to_original)


def _without_prefix(model, state_dict, prefix, metadata) -> None:
    for key in [k for k in state_dict if k.startswith(f'{prefix}module.')]:
        state_dict[prefix + key[len(prefix) + 7 :]] = state_dict.pop(key)


def _with_prefix(state_dict, prefix, *_) -> None:
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[f'{prefix}module.{key[len(prefix) :]}'] = state_dict.pop(
            key
        )


def _to_original(state_dict, prefix, *_) -> None:
    """Take the weights of the linear layer that was here before."""
    for name in ('weight', 'bias'):
        if prefix + name in state_dict:
            value = state_dict.pop(prefix + name)
            state_dict[f'{prefix}original_layer.{name}'] = value
