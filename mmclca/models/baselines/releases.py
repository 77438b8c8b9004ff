# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names of the releases of TransFG, FFVT and SIM-Trans, which share a code."""

import re

import torch

from mmclca.checkpoints.families.family import POS_EMBED, Family
from mmclca.checkpoints.releases import renamed

MARK = 'transformer.encoder.'
ENCODER = r'transformer\.encoder\.'
BLOCKS = (
    (rf'{ENCODER}layer\.(\d+)', r'backbone.layers.\1'),
    (rf'{ENCODER}(?:part_layer|ff_last_layer)', 'backbone.last_layers.0'),
)
PARTS_OF_BLOCK = (
    (r'attention_norm\.', 'ln1.'),
    (r'ffn_norm\.', 'ln2.'),
    (r'attn\.out\.', 'attn.proj.'),
    (r'attn\.qkv\.', 'attn.qkv.'),
    (r'ffn\.fc1\.', 'ffn.layers.0.0.'),
    (r'ffn\.fc2\.', 'ffn.layers.1.'),
)
EMBEDDINGS = r'transformer\.embeddings\.'
RELEASE = Family(
    mark=ENCODER,
    renames=(
        *(
            (rf'{block}\.{part}', f'{new}.{name}')
            for block, new in BLOCKS
            for part, name in PARTS_OF_BLOCK
        ),
        (rf'{ENCODER}(part|ff_encoder|encoder)_norm\.', 'backbone.ln1.'),
        (
            rf'{ENCODER}part_structure\.gcn\.(gc\d)\.weight',
            r'backbone.structure.\1',
        ),
        (f'{EMBEDDINGS}cls_token', 'backbone.cls_token'),
        (f'{EMBEDDINGS}position_embeddings', POS_EMBED),
        (
            rf'{EMBEDDINGS}patch_embeddings\.',
            'backbone.patch_embed.projection.',
        ),
        (r'(part_)?head\.(\d)\.', r'head.layers.\2.'),
        (r'(part_)?head\.', 'head.fc.'),
    ),
    # of SIM-Trans, which no output depends on
    left_out=rf'{EMBEDDINGS}struc|{ENCODER}part_structure\.(?!gcn\.)',
)


def rename_release(state_dict: dict, prefix: str) -> list[str]:
    """Give a release the names of a classifier of this package, in place.

    Returns:
        list[str]: What is left out; nothing where it is no such release.
    """
    if not any(key.startswith(prefix + MARK) for key in state_dict):
        return []
    names = [key for key in state_dict if key.startswith(prefix)]
    weights = {key[len(prefix) :]: state_dict.pop(key) for key in names}
    left_out = [name for name in weights if re.match(RELEASE.left_out, name)]
    for name in left_out:
        del weights[name]
    for name, value in _with_qkv(weights).items():
        state_dict[prefix + renamed(name, RELEASE)] = value
    return left_out


def _with_qkv(weights: dict) -> dict:
    """Join the projections to queries, keys and values, which are apart."""
    joined = {}
    for name, value in weights.items():
        if '.attn.query.' in name:
            apart = [name.replace('query', x) for x in ('key', 'value')]
            value = torch.cat([value, *(weights[part] for part in apart)])
        if not re.search(r'\.attn\.(key|value)\.', name):
            joined[name.replace('.query.', '.qkv.')] = value
    return joined
