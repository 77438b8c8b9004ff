# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import replace

import pytest
import torch

from mmclca.benchmark.candidates import Size, timm_vit
from mmclca.benchmark.memory import can_measure, peak_memory
from mmclca.benchmark.setting import Setting

WIDE = timm_vit(Size('wide', (32, 32), 1024, 2, 2, 4096))
WEIGHTS = 4 * WIDE.cost().params  # about 100 MiB
KINDS = ('cpu', pytest.param('cuda', marks=pytest.mark.gpu))


@pytest.fixture(params=KINDS)
def setting(request):
    setting = Setting(device=request.param, batch=2)
    if setting.on_gpu and not torch.cuda.is_available():
        pytest.skip('needs a GPU')
    if not can_measure(setting):
        pytest.skip('needs Linux')
    return setting


@pytest.mark.slow
def test_the_same_twice_and_more_for_more_images(setting):
    """Beside the weights, of which the small model has few."""
    small = timm_vit(Size('small', (224, 224), 64, 1, 2, 256))
    few, same, more = (
        peak_memory(small, replace(setting, batch=batch))
        for batch in (8, 8, 32)
    )
    assert same == pytest.approx(few, rel=0.1)
    assert more > 2.5 * few


def test_weights_in_inference_and_four_times_them_in_training(setting):
    """Weights; and their gradients and AdamW's two moments."""
    for train, least in ((False, 1), (True, 4)):
        peak = peak_memory(WIDE, replace(setting, train=train))
        assert least * WEIGHTS < peak < (least + 0.5) * WEIGHTS
