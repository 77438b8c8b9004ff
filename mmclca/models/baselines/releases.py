# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names of the releases of TransFG, FFVT and SIM-Trans, which share a code."""

import re

import torch

from mmclca.checkpoints.families.family import POS_EMBED

MARK = 'transformer.encoder.'
# parameters of SIM-Trans that no output depends on
DEAD = r'transformer\.(embeddings\.struc|encoder\.part_structure\.(?!gcn\.))'
# patterns and what takes their place, one after the other in each name
RENAMES = (
    (r'^transformer\.embeddings\.position_embeddings$', POS_EMBED),
    (r'^transformer\.(embeddings|encoder)\.', 'backbone.'),
    (r'\.patch_embeddings\.', '.patch_embed.projection.'),
    (r'\.(part|ff_encoder|encoder)_norm\.', '.ln1.'),
    (r'\.part_structure\.gcn\.(gc\d)\.weight$', r'.structure.\1'),
    (r'\.layer\.', '.layers.'),
    (r'\.(part_layer|ff_last_layer)\.', '.last_layers.0.'),
    (r'\.attention_norm\.', '.ln1.'),
    (r'\.ffn_norm\.', '.ln2.'),
    (r'\.attn\.query\.', '.attn.qkv.'),
    (r'\.attn\.out\.', '.attn.proj.'),
    (r'\.ffn\.fc1\.', '.ffn.layers.0.0.'),
    (r'\.ffn\.fc2\.', '.ffn.layers.1.'),
    (r'^(part_)?head\.(\d)\.', r'head.layers.\2.'),
    (r'^(part_)?head\.(weight|bias)$', r'head.fc.\2'),
)


def rename_release(state_dict: dict, prefix: str, metadata: dict) -> None:
    """Give a release the names of a classifier of this package, in place.

    A report of the load lists what no model needs, which is dropped.
    """
    if not any(key.startswith(prefix + MARK) for key in state_dict):
        return
    names = [key for key in state_dict if key.startswith(prefix)]
    weights = {key[len(prefix) :]: state_dict.pop(key) for key in names}
    dead = [name for name in weights if re.match(DEAD, name)]
    if 'source' in metadata:
        metadata['source'].begin().unused += dead
    _join_projections(weights)
    for name in weights:
        if name not in dead:
            state_dict[prefix + own_name(name)] = weights[name]


def own_name(name: str) -> str:
    """Return the name of a parameter in a classifier of this package."""
    for pattern, new in RENAMES:
        name = re.sub(pattern, new, name)
    return name


def _join_projections(weights: dict) -> None:
    """Join the projections to queries, keys and values, in place.

    Where one of them lacks there is none: the load says what is missing.
    """
    for name in [name for name in weights if '.attn.query.' in name]:
        names = [name.replace('query', of) for of in ('query', 'key', 'value')]
        apart = [weights.pop(part) for part in names if part in weights]
        if len(apart) == len(names):
            weights[name] = torch.cat(apart)
