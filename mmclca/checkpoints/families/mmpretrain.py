# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Backbones of mmpretrain and of this package without their classifier."""

from .family import Family

BARE = Family(
    mark=r'layers\.\d+\.|patch_embed\.projection\.', renames=(), encoders=('',)
)
