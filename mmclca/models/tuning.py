# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Model parts, the parts to fine-tune, and LoRA around a classifier."""

from collections.abc import Iterator, Sequence
from copy import deepcopy

import torch
from mmcv.cnn.bricks.norm import is_norm
from mmengine.model import BaseModel, BaseModule
from mmpretrain.models.peft import LoRAModel as _LoRAModel
from mmpretrain.models.peft.lora import LoRALinear
from torch import nn

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice

from .backbones.base import ForeignWeights, rename_to_original
from .layers.resmlp_layer import Affine

# trainable parts per scope, see `part_of`
ALWAYS = ('head', 'reducer')
SCOPES = dict(
    attn=('attn', 'pos_embed', *ALWAYS),
    ffn=('ffn', 'pos_embed', *ALWAYS),
    norm=('norm', 'pos_embed', *ALWAYS),
    head=ALWAYS,
    lora=('lora', *ALWAYS),
    full=('attn', 'ffn', 'norm', 'pos_embed', 'lora', 'rest', *ALWAYS),
)
# steps of a module path that identify a part; the first match wins
NAMED = dict(
    reducer=('reducer', 'cache'),
    attn=('attn', 'mix'),
    ffn=('ffn', 'mlp'),
    pos_embed=('pos_embed',),
)


def part_of(path: str, module: nn.Module) -> str:
    """Return the model part of a parameter or module, given its path.

    Parts are 'attn', 'ffn', 'norm', 'pos_embed', 'reducer', 'lora', 'head'
    (all outside the backbone) and 'rest'. ``module`` is the module itself, or
    the owner of the parameter.
    """
    steps = path.split('.')
    if any(step.startswith('lora_') for step in steps):
        return 'lora'
    if 'backbone' not in steps:
        return 'head'
    named = [part for part, names in NAMED.items() if {*names} & {*steps}]
    if named[:1] == ['reducer']:
        return 'reducer'
    if is_norm(module) or isinstance(module, Affine):
        return 'norm'
    if any(step.startswith('gamma') for step in steps):
        return 'rest'
    return named[0] if named else 'rest'


def parts(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, str]]:
    """Yield name, parameter and model part of each parameter."""
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(path, recurse=False):
            yield name, parameter, part_of(name, module)


def tune_only(model: nn.Module, scope: str) -> tuple[int, int]:
    """Freeze all parameters outside a scope, in place.

    Returns the numbers of trainable and all parameters. Raises Error if
    the scope is unknown or matches no backbone parameter.
    """
    check_choice(SCOPES, scope=scope)
    named = list(parts(model))
    kinds = {part for _, _, part in named}
    if scope != 'full' and (SCOPES[scope][0] not in kinds or len(kinds) < 2):
        raise Error(
            f'scope={scope!r} matches no backbone parameters of '
            f'{type(model).__name__}; scopes are {", ".join(SCOPES)}, where '
            "lora needs type='mmclca.LoRAModel', and full fits all models"
        )
    for _, parameter, part in named:
        # keep parameters frozen by a config or LoRAModel
        trains = parameter.requires_grad and part in SCOPES[scope]
        parameter.requires_grad_(trains)
    train = sum(p.numel() for _, p, _ in named if p.requires_grad)
    return train, sum(p.numel() for _, p, _ in named)


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
        Error: If no linear layer matches ``targets``, or the classifier
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
            raise Error(
                f'targets={targets!r} matches no linear layer of the backbone '
                f"in {type(self.module).__name__}; use [dict(type='.*qkv')]"
            )
        self._allow_new_parameters()
        # at construction, because optimizers may skip frozen parameters
        tune_only(self, 'lora')
        self._register_state_dict_hook(_without_prefix)
        self._register_load_state_dict_pre_hook(_with_prefix)
        for layer in self.modules():
            if isinstance(layer, LoRALinear):
                layer._register_load_state_dict_pre_hook(rename_to_original)

    def _allow_new_parameters(self) -> None:
        """Let the backbone load weights of a model without LoRA."""
        backbone = self.module.backbone
        if isinstance(backbone, ForeignWeights):
            layers = [
                name
                for name, layer in backbone.named_modules()
                if isinstance(layer, LoRALinear)
            ]
            backbone.may_be_new = (
                *backbone.may_be_new,
                *(f'{name}.lora_' for name in layers),
            )

    @torch.no_grad()
    def merged(self) -> BaseModel:
        """Return a plain trainable copy with equal outputs in evaluation."""
        model = deepcopy(self.module)
        for path, layer in [*model.named_modules()]:
            if isinstance(layer, LoRALinear):
                plain, up = layer.original_layer, layer.lora_up.weight
                plain.weight += layer.scaling * up @ layer.lora_down.weight
                parent, _, name = path.rpartition('.')
                setattr(model.get_submodule(parent), name, plain)
        return model.requires_grad_(True)

    def __getattr__(self, name: str):
        """Look up missing attributes in the classifier."""
        try:
            return nn.Module.__getattr__(self, name)
        except AttributeError:
            return getattr(nn.Module.__getattr__(self, 'module'), name)


def without_lora(model: LoRAModel) -> BaseModel:
    """Merge LoRA into the weights and return a plain classifier.

    A config attached by ``mmpretrain.get_model`` is converted, too.

    Args:
        model (LoRAModel): A classifier with LoRA.

    Returns:
        BaseModel: A copy without LoRA.
    """
    plain, attributes = model.merged(), vars(model)
    if '_config' in attributes:
        config = deepcopy(attributes['_config'])
        preprocessor = config.model.get('data_preprocessor')
        config.model = config.model.module
        config.model.setdefault('data_preprocessor', preprocessor)
        plain._config = config
        plain._dataset_meta = attributes['_dataset_meta']
    return plain


def _without_prefix(model, state_dict, prefix, metadata) -> None:
    for key in [k for k in state_dict if k.startswith(f'{prefix}module.')]:
        state_dict[prefix + key[len(prefix) + 7 :]] = state_dict.pop(key)


def _with_prefix(state_dict, prefix, *_) -> None:
    for key in [k for k in state_dict if k.startswith(prefix)]:
        name = f'{prefix}module.{key[len(prefix) :]}'
        state_dict[name] = state_dict.pop(key)
