# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The baselines and their public code, in float64, where it is at hand.

Cases and what draws their tensors lie beside the checkout, in
``shared/parity/newer``; without them all is skipped.
"""

import pytest
import torch
from mmengine.runner import load_checkpoint
from mmpretrain.structures import DataSample
from newer_cases import draws_of, each
from parity import close

from mmclca.models.baselines.ffvt import mutual_attention
from mmclca.models.baselines.losses import (
    cle_vit_loss,
    cle_vit_triplet,
    shuffle_parts,
    sim_trans_contrast,
    transfg_contrast,
)
from mmclca.models.baselines.sim_trans import structure
from mmclca.models.baselines.transfg import select_parts
from mmclca.models.reduction.attention import Attended
from mmclca.registry import MODELS
