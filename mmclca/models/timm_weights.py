# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Convert the weights of plain vision transformers to timm."""

from functools import partial
from typing import Any

from mmpretrain.models.classifiers import ImageClassifier
from timm.models.deit import VisionTransformer, VisionTransformerDistilled
from timm.models.vision_transformer import ParallelThingsBlock
from torch import Tensor, nn

from mmclca.checkpoints.compare import compare_weights
from mmclca.checkpoints.families import FAMILIES, family
from mmclca.errors import Error
from mmclca.utils.messages import join_first
from mmclca.utils.meta_device import on_meta_device

from .backbones import TokenReductionViT
from .heads import DistilledHead, base
from .recording import as_reducible

CLS, POS = 'backbone.cls_token', 'backbone.pos_embed'
TOKENS, AVERAGES = ('cls_token', 'prefix'), ('average', 'avg_featmap')


def to_timm(model: ImageClassifier) -> dict[str, Tensor]:
    """Convert the weights of a plain ViT classifier to timm.

    Logits are equal in a timm model with the same settings, including the
    number of heads and the norm epsilon, if ``model`` reduces no tokens. A
    reducer without parameters and the references of a head are left out.
    Tensors are shared.

    Args:
        model (ImageClassifier): Classifier with a
            :class:`TokenReductionViT` or mmpretrain's ``VisionTransformer``
            and a linear or :class:`DistilledHead`.

    Returns:
        dict[str, Tensor]: State dict that timm loads strictly.

    Raises:
        Error: If timm has no equal model, for example for a CLA head, a
            cache, a convolutional stem or a reducer with parameters.

    Example:
        >>> vit = timm.create_model('deit_tiny_patch16_224', num_classes=40)
        >>> vit.load_state_dict(mmclca.to_timm(model))
    """
    _refuse(_differences(model))
    vit, weights = as_reducible(model.backbone), model.state_dict()
    weights.pop('head.references', None)
    if vit.register_tokens is not None and vit.with_cls_pos:
        # timm's models with registers have no position for CLS
        row, weights[POS] = weights[POS].tensor_split([1], dim=1)
        weights[CLS] = weights[CLS] + row
    theirs = _timm_model(model.head, vit).state_dict()
    # a name has one form per family; unused forms do no harm
    names = {family.renamed(n, one): n for one in FAMILIES for n in theirs}
    found = {names.get(name, name): x for name, x in weights.items()}
    differences = compare_weights(theirs, found)
    _refuse([*differences.unexpected, *differences.unfit])
    return found


def _refuse(parts: list[str]) -> None:
    if parts:
        raise Error(f'timm has no {join_first(parts, 2)}; use a plain ViT')


def _differences(model: Any) -> list[str]:
    """List what timm lacks, except parameters."""
    if not isinstance(model, ImageClassifier):
        return [type(model).__name__]
    head, vit = model.head, as_reducible(model.backbone)
    if not isinstance(vit, TokenReductionViT):
        return [type(vit).__name__]
    averages = vit.register_tokens is None and vit.out_type in AVERAGES
    heads = DistilledHead if vit.is_distilled else tuple(base.LINEAR_HEADS)
    differs = {
        type(model.neck).__name__: model.with_neck,
        type(vit.cache).__name__: vit.cache is not None,
        type(head).__name__: not isinstance(head, heads),
        type(vit.reducer).__name__: [*vit.reducer.parameters()],
        f'out_type={vit.out_type!r}': not (averages or vit.out_type in TOKENS),
        'out_indices': max(vit.out_indices) < len(vit.layers) - 1,
        'output': isinstance(head, DistilledHead) and head.output != 'logits',
    }
    return [name for name in differs if differs[name]]


def _timm_model(head: Any, vit: Any) -> nn.Module:
    """Build timm's model with the same settings on the meta device."""
    names, registers = ' '.join(vit.state_dict()), vit.register_tokens
    channels = next(vit.patch_embed.parameters()).size(1)
    # timm rounds down
    ratio = (vit.arch_settings['feedforward_channels'] + 0.5) / vit.embed_dims
    kinds = VisionTransformer, VisionTransformerDistilled
    options: dict[str, Any] = {}
    if 'branches' in names:
        number = len(vit.layers[0].branches)
        options['block_fn'] = partial(ParallelThingsBlock, num_parallel=number)
    with on_meta_device():
        return kinds[vit.is_distilled](
            img_size=vit.img_size,
            patch_size=vit.stride,
            in_chans=channels,
            num_classes=head.num_classes,
            global_pool='token' if vit.with_cls_token else 'avg',
            embed_dim=vit.embed_dims,
            depth=len(vit.layers),
            num_heads=1,  # does not affect shapes
            mlp_ratio=ratio,
            qkv_bias='qkv.bias' in names,
            init_values='gamma1' in names,
            class_token=vit.with_cls_token,
            no_embed_class=registers is not None or not vit.with_cls_pos,
            reg_tokens=0 if registers is None else registers.size(1),
            pre_norm='pre_norm' in names,
            fc_norm=vit.out_type == 'avg_featmap',
            **options,
        )
