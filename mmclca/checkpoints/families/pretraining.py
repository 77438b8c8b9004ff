# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Release families: masked autoencoders with decoders.

MAE, MAE-Lite and MIRL.
"""

import re

from torch import Tensor

from .family import Family, renamed
from .vit import EMBEDDING, LAYER_RENAMES, layer_renames

# decoder names, to recognize these files by
DECODED = re.compile(r'(module\.)?(model\.)?decoder_(embed|pred)\d*\.')
DECODER = r'neck.decoders.\1'
BLOCK, LAYER = r'decoder_blocks(\d+)\.(\d+)', rf'{DECODER}.layers.\2'
MAE = (
    (r'mask_token$', 'neck.mask_token'),
    (r'decoder_(embed|pos_embed|pred)\b', r'neck.decoder_\1'),
    (r'decoder_norm\.', 'neck.ln1.'),
    *layer_renames(r'decoder_blocks\.(\d+)', r'neck.decoder_blocks.\1'),
)
MIRL = (
    (r'norm_low\.', 'neck.memory.0.'),
    (r'decoder_embed0_1\.', 'neck.memory.1.'),
    (r'norm(\d+)\.', rf'{DECODER}.embed.0.'),
    (r'decoder_embed(\d+)\.', rf'{DECODER}.embed.1.'),
    (r'(decoder_)?(mask_token|pos_embed)(\d+)$', r'neck.decoders.\3.\2'),
    (rf'{BLOCK}\.norm2\.', rf'{LAYER}.ln_query.'),
    (rf'{BLOCK}\.norm3\.', rf'{LAYER}.ln_memory.'),
    (rf'{BLOCK}\.norm4\.', rf'{LAYER}.ln2.'),
    (rf'{BLOCK}\.cross_attn\.', rf'{LAYER}.cross_attn.'),
    *layer_renames(BLOCK, LAYER),
    (r'decoder_norm(\d+)\.', rf'{DECODER}.ln.'),
    (r'decoder_pred(\d+)\.(weight|bias)(_v)?$', rf'{DECODER}.pred.\2'),
)
ENCODER = (*EMBEDDING, *LAYER_RENAMES, (r'norm\.', 'backbone.ln1.'))
PRETRAINING = Family(
    mark=DECODED.pattern,
    renames=(*MIRL, *MAE, *ENCODER, ('', '')),  # no other changes
    # the teacher and its adapters; gains in MIRL's predictors are 1
    left_out=r'(tch_model|attn_adapter|hidden_adapter)\.|.*\.weight_g$',
)


def rename_pretraining(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename weights with decoders for pre-training models.

    The encoder gets classifier names, so the weights can be loaded into a
    classifier, too.
    """
    named = {re.sub(r'^(module\.)?(model\.)?', '', str(k)): k for k in weights}
    return {
        renamed(name, PRETRAINING): weights[key]
        for name, key in named.items()
        if not re.match(PRETRAINING.left_out, name)
    }
