# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parity of pre-training with public code, in float64."""

import torch
from parity import close
from pretraining_parity import (
    DRAWN,
    built,
    check_gradients,
    check_sums,
    each,
    losses_of,
    mae,
    mirl,
)


@each('mae', 'mae_lite')
def test_masked_autoencoders(case, tmp_path):
    expect, model = case['expect'], built(mae(case), case, tmp_path)
    predicted = []
    model.neck.register_forward_hook(lambda *a: predicted.append(a[-1]))
    assert close(losses_of(model, case)['loss'], expect['loss'])
    check_gradients(model, expect['grad_norm'])
    check_sums(predicted[0], expect['pred_sums'])
    seen = model.backbone.encode(
        DRAWN.images(case), torch.tensor(case['ids_shuffle'])
    )
    if 'mask' in expect:  # masked autoencoders alone
        rows = [''.join(f'{x:.0f}' for x in row) for row in seen.mask]
        assert rows == expect['mask']
    assert seen.borders[0].size(1) == expect['visible'] + 1


@each('mirl')
def test_residual_learning(case, tmp_path):
    expect, model = case['expect'], built(mirl(case), case, tmp_path)
    predicted, memories = [], model.neck.memories
    lengths = []

    def remember(*given):
        found = memories(*given)
        lengths.extend(m if m is None else m.size(1) for m in found)
        return found

    model.neck.memories = remember
    model.neck.register_forward_hook(lambda *a: predicted.extend(a[-1]))
    losses = [*losses_of(model, case).values()]
    assert close(sum(losses), expect['loss'])
    assert close(torch.stack(losses) * len(losses), expect['terms'])
    check_gradients(model, expect['grad_norm'])
    check_sums(predicted, expect['pred_sums'])
    assert lengths == expect['memory_length']
    order = torch.tensor(case['ids_shuffle'])
    z = model.backbone.segments(
        model.backbone.encode(DRAWN.images(case), order)
    )
    check_sums(z, expect['segment_sums'])
