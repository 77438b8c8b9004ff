# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names of networks and rows in tables."""

from frozen import DEPTH

from .networks import GRID, Network
from .readings import FIT, LAST
from .rows import NONE

VITS = [Network(file).network for file in GRID['vits']]
TITLES = dict(
    vit_tiny='ViT-Tiny',
    deit_tiny='DeiT-Tiny',
    mobileone_s0='MobileOne-S0',
    tf_efficientnet_lite0='EfficientNet-Lite0',
    tf_efficientnet_lite1='EfficientNet-Lite1',
)


def name_group(network):
    """Return the group, to count missing networks."""
    if network.method:
        size = '' if network.img_size == 224 else ', smaller photos'
        return f'keep rate {network.keep_rate:g}{size}'
    return 'full ViTs' if network.is_vit else 'CNNs'


def name_row(row):
    """Return the name for tables."""
    parts = [TITLES[row.network]]
    if row.method != NONE:
        parts.append(f'{row.method} {row.keep_rate:g}')
    if row.img_size != 224 or row.network not in VITS:
        parts.append(f'{row.img_size:g} px')
    if row.depth < DEPTH:
        parts.append(f'{row.depth:g} layers')
    if row.features == LAST:
        parts.append(LAST)
    if row.classifier == FIT:
        parts.append(FIT)
    return ', '.join(parts)
