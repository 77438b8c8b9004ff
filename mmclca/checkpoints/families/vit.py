# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Release families: ViTs.

timm, with the names of DeiT, MAE, DINO, DINOv2 and MoCo v3; the CLCA authors
and TokenReduction; open_clip, torchvision, Hugging Face, TransFG; mmpretrain.
"""

from dataclasses import replace
from math import isqrt

from torch import Tensor

from .family import (
    POS_EMBED,
    Family,
    Network,
    patch_settings,
    spelling,
    transformer_sizes,
)

BLOCK, LAYER = r'blocks\.(\d+)', r'backbone.layers.\1'
EMBEDDING = (
    (r'cls_token$', 'backbone.cls_token'),
    (r'dist_token$', 'backbone.dist_token'),
    (r'pos_embed$', POS_EMBED),
    (r'(reg_token|register_tokens)$', 'backbone.register_tokens'),
    (r'patch_embed\.proj\.', 'backbone.patch_embed.projection.'),
    (r'norm_pre\.', 'backbone.pre_norm.'),
)


def layer_renames(block: str, layer: str, gamma1: str = 'attn.gamma1'):
    """Return the renames for a layer with attention and FFN."""
    return (
        (rf'{block}\.norm(?P<n>[12])\.', rf'{layer}.ln\g<n>.'),
        (rf'{block}\.attn\.', rf'{layer}.attn.'),
        (rf'{block}\.mlp\.fc1\.', rf'{layer}.ffn.layers.0.0.'),
        (rf'{block}\.mlp\.fc2\.', rf'{layer}.ffn.layers.1.'),
        (rf'{block}\.(ls1\.gamma|gamma_1)$', rf'{layer}.{gamma1}.weight'),
        (rf'{block}\.(ls2\.gamma|gamma_2)$', rf'{layer}.ffn.gamma2.weight'),
    )


def stacked_qkv(block: str) -> tuple[tuple[str, str], ...]:
    """Return the pattern for stacking query, key and value."""
    part = r'(?P<part>query|key|value)\.(?P<kind>weight|bias)'
    return ((rf'({block}\.attn\.){part}', r'\1qkv.\g<kind>'),)


LAYER_RENAMES = layer_renames(BLOCK, LAYER)
HEAD = (
    (r'norm\.', 'backbone.ln1.'),
    (r'fc_norm\.', 'backbone.ln2.'),
    (r'pre_logits\.fc\.', 'head.layers.pre_logits.'),
    (r'head_dist\.', 'head.layers.head_dist.'),
    (r'(head|fc|classifier)\.', 'head.layers.head.'),
)
RENAMES = (*EMBEDDING, *LAYER_RENAMES, *HEAD)
VIT = Family(
    mark=r'blocks\.\d+\.|patch_embed\.proj\.',
    renames=RENAMES,
    left_out=r'decoder_|mask_token$|n_averaged$',
)

# timm names, and names for CLR tokens, reducers and the CLA head
REDUCERS = (
    (r'clr$', 'backbone.cache.clr'),
    (r'cluster_layers\.(\d+)\.v$', r'backbone.reducer.stages.\1'),
    (r'(score_predictor|cluster_layers)\.', 'backbone.reducer.stages.'),
)
TOKEN_REDUCTION = Family(
    mark=r'(?<!cache\.)clr$|(score_predictor|cluster_layers)\.',
    renames=(*REDUCERS, *RENAMES),
)
CLCA = Family(
    mark=r'ifa_head\.',
    renames=(
        *REDUCERS,
        (r'ifa_head\.0\.', 'head.layers.'),
        (r'ifa_head\.', 'head.'),
        *RENAMES,
    ),
    left_out=r'head\.',  # unused linear head next to the CLA head
)

# open_clip, image tower
RESBLOCK = r'transformer\.resblocks\.(\d+)'
CLIP = Family(
    mark=r'transformer\.resblocks\.\d+\.',
    renames=(
        (r'class_embedding$', 'backbone.cls_token'),
        (r'positional_embedding$', POS_EMBED),
        (r'conv1\.', 'backbone.patch_embed.projection.'),
        (r'ln_pre\.', 'backbone.pre_norm.'),
        (rf'{RESBLOCK}\.ln_([12])\.', rf'{LAYER}.ln\2.'),
        (rf'{RESBLOCK}\.attn\.in_proj_', rf'{LAYER}.attn.qkv.'),
        (rf'{RESBLOCK}\.attn\.out_proj\.', rf'{LAYER}.attn.proj.'),
        (rf'{RESBLOCK}\.mlp\.c_fc\.', rf'{LAYER}.ffn.layers.0.0.'),
        (rf'{RESBLOCK}\.mlp\.c_proj\.', rf'{LAYER}.ffn.layers.1.'),
        (r'ln_post\.', 'backbone.ln1.'),
        (r'proj$', 'head.layers.head.weight'),
        (r'head\.bias$', 'head.layers.head.bias'),
    ),
    values=(
        ('class_embedding', 'class_embedding', lambda x: x.reshape(1, 1, -1)),
        ('positional_embedding', 'positional_embedding', lambda x: x[None]),
        # the projection is a head without a bias
        ('proj', 'head.bias', lambda x: x.new_zeros(x.size(1))),
        ('proj', 'proj', lambda x: x.t()),
    ),
)

# torchvision; old files name the FFN differently
TORCHVISION = replace(
    VIT,
    mark=r'encoder\.layers\.encoder_layer_\d+\.',
    spelling=spelling(
        'class_token>cls_token encoder.pos_embedding>pos_embed ln_>norm '
        'conv_proj.>patch_embed.proj. encoder.layers.encoder_layer_>blocks. '
        'self_attention.in_proj_>attn.qkv. self_attention.out_proj>attn.proj '
        'mlp.0>mlp.fc1 mlp.3>mlp.fc2 mlp.linear_1>mlp.fc1 '
        'mlp.linear_2>mlp.fc2 encoder.ln.>norm. '
        'heads.head.>head. heads.0.>head. heads.>head.'
    ),
)
# Hugging Face: ViT, DeiT, MAE, MSN and DINOv2; CLIP, image tower
HF_VIT = replace(
    VIT,
    mark=r'encoder\.layer\.\d+\.attention\.attention\.',
    spelling=spelling(
        'embeddings.patch_embeddings.projection.>patch_embed.proj. '
        'embeddings.position_embeddings>pos_embed embeddings.> '
        'distillation_token>dist_token encoder.layer.>blocks. '
        'attention.attention.>attn. attention.output.dense>attn.proj '
        'layernorm_before>norm1 layernorm_after>norm2 layernorm.>norm. '
        'intermediate.dense>mlp.fc1 output.dense>mlp.fc2 '
        'layer_scale1.lambda1>ls1.gamma layer_scale2.lambda1>ls2.gamma'
    ),
    left_out=rf'{VIT.left_out}|pooler\.',
    stacked=stacked_qkv(BLOCK),
)
# TransFG, FFVT and SIM-Trans share their code; some parameters in SIM-Trans
# do not affect any output
TRANSFG = Family(
    mark=(
        r'transformer\.encoder\.'
        r'(layer\.\d+\.(attn|attention_norm)|part_structure)\.'
    ),
    spelling=spelling(
        'transformer.embeddings.position_embeddings>pos_embed '
        'transformer.embeddings.patch_embeddings.>patch_embed.proj. '
        'transformer.embeddings.> transformer.encoder.> part_layer.>last. '
        'ff_last_layer.>last. layer.>blocks. part_norm.>norm. '
        'ff_encoder_norm.>norm. encoder_norm.>norm. attention_norm.>norm1. '
        'ffn_norm.>norm2. attn.out.>attn.proj. ffn.fc>mlp.fc part_head.>head.'
    ),
    renames=(
        *EMBEDDING,
        *LAYER_RENAMES,
        *layer_renames('last', 'backbone.last_layers.0'),
        (r'part_structure\.gcn\.(gc\d)\.weight$', r'backbone.structure.\1'),
        (r'norm\.', 'backbone.ln1.'),
        (r'head\.(\d)\.', r'head.layers.\1.'),
        (r'head\.', 'head.fc.'),
    ),
    left_out=r'struc|part_structure\.(?!gcn\.)',
    stacked=stacked_qkv(f'(?:{BLOCK}|last)'),
)
HF_CLIP = replace(
    CLIP,
    mark=r'encoder\.layers\.\d+\.self_attn\.',
    spelling=spelling(
        'embeddings.position_embedding.weight>positional_embedding '
        'embeddings.patch_embedding.>conv1. embeddings.> layer_norm>ln_ '
        'encoder.layers.>transformer.resblocks. self_attn.>attn. '
        'pre_layrnorm.>ln_pre. post_layernorm.>ln_post. fc1>c_fc fc2>c_proj'
    ),
    left_out=r'position_ids$',
    stacked=(
        (
            rf'({RESBLOCK}\.attn\.)(?P<part>[qkv])_proj\.(weight|bias)',
            r'\1in_proj_\4',
        ),
    ),
)

# classifiers from mmpretrain and this package, and their backbones
OWN = r'(?:layers\.\d+\.|patch_embed\.projection\.)'
CLASSIFIER = Family(mark=rf'backbone\.{OWN}', renames=(('', ''),))
BARE = Family(mark=OWN, renames=())


def _settings(weights: dict[str, Tensor]) -> dict:
    """Infer the settings for a ViT, DeiT or DINOv2."""
    rows = weights['pos_embed'].size(1)
    backbone = patch_settings(weights, rows, transformer_sizes(weights))
    backbone['norm_cfg'] = dict(type='LN', eps=1e-6)
    if 'layers.0.attn.qkv.bias' not in weights:
        backbone['qkv_bias'] = False
    if 'layers.0.attn.gamma1.weight' in weights:
        backbone['layer_scale_init_value'] = 1e-5  # replaced on load
    if 'register_tokens' in weights:
        backbone['num_registers'] = weights['register_tokens'].size(1)
    if isqrt(rows) ** 2 == rows:
        backbone['with_cls_pos'] = False
    return backbone


NETWORK = Network('mmclca.TokenReductionViT', (), _settings)
