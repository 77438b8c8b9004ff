# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parity of pre-training with public code, in float64."""

import torch
from parity import close
from pretraining_parity import (
    DRAWN,
    adapters,
    built,
    check_gradients,
    check_sums,
    distilled,
    each,
    losses_of,
    mae,
    mirl,
    weights,
)

from mmclca.models.distillation import attention_distillation
from mmclca.models.selfsup import moco_v3_loss


@each('mae', 'mae_lite')
def test_mae_equals_public_code(case, tmp_path):
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
    assert seen.inputs[0].size(1) == expect['visible'] + 1


@each('mirl')
def test_mirl_equals_public_code(case, tmp_path):
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


@each('mae_distill')
def test_distilled_mae_equals_public_code(case, tmp_path):
    expect = case['expect']
    model = built(distilled(case, tmp_path), case, tmp_path)
    ours = adapters(case, model)
    for key, name in ours.items():
        model.get_parameter(name).data.copy_(weights(case)[key])
    attention, *hidden = [*losses_of(model, case).values()][1:]
    assert close(attention, case['attn_alpha'] * expect['attn_loss'])
    if hidden:
        assert close(*hidden, case['hidden_alpha'] * expect['hidden_loss'])
    norms = {
        k.removeprefix('model.'): v for k, v in expect['grad_norm'].items()
    }
    check_gradients(model, norms, ours)


@each('attention_distill_loss')
def test_attention_distillation_equals_public_code(case):
    found, each_loss = 0, case['expect']['each']
    for layer, expected in zip(case['layers'], each_loss, strict=True):
        given = {
            name: DRAWN.given(case, f'{name}{layer}').requires_grad_()
            for name in ('student_q', 'student_k', 'teacher_q', 'teacher_k')
        }
        heads = [given[n].size(1) for n in ('teacher_q', 'student_q')]
        key = f'attn_adapter.adapter{layer - 1}.weight'
        adapter = None
        if case['adapter']:
            adapter = DRAWN.tensor(case['seed'], key, (*heads, 1, 1))
            adapter = adapter[:, :, 0, 0].double().requires_grad_()
        loss = attention_distillation(**given, adapter=adapter)
        assert close(loss.detach(), expected)
        found = found + loss
    found.backward()
    assert close(found.detach(), case['expect']['loss'])
    norms = case['expect']['grad_norm']
    assert close(given['student_q'].grad.norm(), norms[f'q{layer}'])
    assert close(given['student_k'].grad.norm(), norms[f'k{layer}'])
    if adapter is not None:
        assert close(adapter.grad.norm(), norms[key])


@each('moco_v3_loss')
def test_moco_v3_loss_equals_public_code(case):
    expect = case['expect']
    views = ('q1', 'q2', 'k1', 'k2')
    given = {n: DRAWN.given(case, n).requires_grad_() for n in views}
    loss = moco_v3_loss(**given, tau=case['tau'])
    loss.backward()
    assert close(loss.detach(), expect['loss'])
    check_sums([given['q1'].grad], [expect['grad_q1']])
    check_sums([given['q2'].grad], [expect['grad_q2']])
