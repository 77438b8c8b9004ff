# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From the names in a foreign checkpoint to those of this package."""

import re

from .positions import FOREIGN_POS_EMBED

# what precedes the names of the encoder in a file: MoCo v3, DINO, CLIP, others
ENCODERS = ('base_encoder.', 'backbone.', 'visual.', '')
FOREIGN = re.compile(
    r'blocks\.\d+\.|patch_embed\.proj\.|transformer\.resblocks\.\d+\.'
)
# of a bare backbone of mmpretrain or this package
BARE = re.compile(r'layers\.\d+\.|patch_embed\.projection\.')
BLOCK = r'(?:blocks|transformer\.resblocks)\.(\d+)'
LAYER = r'backbone.layers.\1'
# timm, the releases that timm's names come from, CLIP, TokenReduction and the
# CLCA authors to this package. The first rule that matches a key applies.
RENAMES = (
    (r'(cls_token|class_embedding)$', 'backbone.cls_token'),
    # by another name, for it may be that CLS has no row
    (r'(pos_embed|positional_embedding)$', f'backbone.{FOREIGN_POS_EMBED}'),
    (r'(reg_token|register_tokens)$', 'backbone.register_tokens'),
    (r'(patch_embed\.proj|conv1)\.', 'backbone.patch_embed.projection.'),
    (r'(norm_pre|ln_pre)\.', 'backbone.pre_norm.'),
    (rf'{BLOCK}\.(?:norm|ln_)([12])\.', rf'{LAYER}.ln\2.'),
    (rf'{BLOCK}\.attn\.in_proj_', rf'{LAYER}.attn.qkv.'),
    (rf'{BLOCK}\.attn\.out_proj\.', rf'{LAYER}.attn.proj.'),
    (rf'{BLOCK}\.attn\.', rf'{LAYER}.attn.'),
    (rf'{BLOCK}\.mlp\.(fc1|c_fc)\.', rf'{LAYER}.ffn.layers.0.0.'),
    (rf'{BLOCK}\.mlp\.(fc2|c_proj)\.', rf'{LAYER}.ffn.layers.1.'),
    (rf'{BLOCK}\.(ls1\.gamma|gamma_1)$', rf'{LAYER}.attn.gamma1.weight'),
    (rf'{BLOCK}\.(ls2\.gamma|gamma_2)$', rf'{LAYER}.ffn.gamma2.weight'),
    (r'(norm|ln_post)\.', 'backbone.ln1.'),
    (r'fc_norm\.', 'backbone.ln2.'),
    (r'clr$', 'backbone.cache.clr'),
    (r'cluster_layers\.(\d+)\.v$', r'backbone.reducer.stages.\1'),
    (r'(score_predictor|cluster_layers)\.', 'backbone.reducer.stages.'),
    (r'ifa_head\.0\.', 'head.layers.'),
    (r'ifa_head\.', 'head.'),
    (r'pre_logits\.fc\.', 'head.layers.pre_logits.'),
    (r'proj$', 'head.layers.head.weight'),
    (r'head\.', 'head.layers.head.'),
    # what has no other name must not get lost: the backbone refuses it
    (r'', 'backbone.'),
)
SHAPES = {  # what CLIP keeps in another shape
    'class_embedding': lambda value: value.reshape(1, 1, -1),
    'positional_embedding': lambda value: value.unsqueeze(0),
    'proj': lambda value: value.t(),
}


def rename_to_classifier(state_dict: dict, prefix: str) -> None:
    """Give the keys under ``prefix`` the names of a classifier, in place.

    Those of a foreign file and of a bare backbone are renamed. What lies
    beside the encoder of a foreign file (a momentum encoder, a text tower, a
    projection) keeps its name. A linear ``head`` beside the CLA head of the
    CLCA authors is dead weight and is left out.
    """
    keys = [key for key in state_dict if key.startswith(prefix)]
    names = [key[len(prefix) :] for key in keys]
    encoder = _encoder(names)
    if encoder is not None:
        names = [name for name in names if name.startswith(encoder)]
        _rename_all(state_dict, prefix, encoder, names)
    elif any(BARE.match(name) for name in names):
        for key, name in zip(keys, names, strict=True):
            state_dict[f'{prefix}backbone.{name}'] = state_dict.pop(key)


def _encoder(names: list[str]) -> str | None:
    """What precedes foreign names; None where there are none."""
    for encoder in ENCODERS:
        starts = len(encoder)
        own = (name for name in names if name.startswith(encoder))
        if any(FOREIGN.match(name[starts:]) for name in own):
            return encoder
    return None


def _rename_all(
    state_dict: dict, prefix: str, encoder: str, names: list[str]
) -> None:
    values = {
        name[len(encoder) :]: state_dict.pop(prefix + name) for name in names
    }
    if any(name.startswith('ifa_head.') for name in values):
        values = {k: v for k, v in values.items() if not k.startswith('head.')}
    if 'proj' in values:  # of CLIP, a head without a bias
        values['head.bias'] = values['proj'].new_zeros(values['proj'].size(1))
    for name, value in values.items():
        if name in SHAPES:
            value = SHAPES[name](value)
        state_dict[prefix + _rename(name)] = value


def _rename(name: str) -> str:
    for pattern, new in RENAMES:
        if re.match(pattern, name):
            return re.sub(pattern, new, name, count=1)
    return name


def rename_to_backbone(state_dict: dict, prefix: str) -> None:
    """As :func:`rename_to_classifier`, for a backbone alone, in place.

    Of the file of a classifier only the backbone is left.
    """
    rename_to_classifier(state_dict, prefix)
    own = f'{prefix}backbone.'
    if not any(key.startswith(own) for key in state_dict):
        return
    for key in [key for key in state_dict if key.startswith(prefix)]:
        value = state_dict.pop(key)
        if key.startswith(own):
            state_dict[prefix + key[len(own) :]] = value
