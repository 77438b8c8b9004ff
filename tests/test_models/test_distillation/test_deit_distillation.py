# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""DeiT's loss against its public code, in float64.

Cases are read from ``shared/parity/family`` next to the checkout, and skipped
if missing.
"""

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from parity import close, normal

from mmclca.models.distillation import deit_distillation

FILE = Path(__file__).parents[4] / 'shared/parity/family/cases.json'
CASES = json.loads(FILE.read_text())['cases'] if FILE.is_file() else ()


def base_of(case, scores):
    """Return the loss on the stored labels."""
    B, K = scores.shape
    one, two = (F.one_hot((torch.arange(B) + i) % K, K) for i in (0, 1))
    soft = {
        'ce': one,
        'soft': 0.7 * one + 0.3 * two,
        'smooth0.1': 0.9 * one + 0.1 / K,
    }
    return F.cross_entropy(scores, soft[case['base']].double())


@pytest.mark.skipif(not CASES, reason='no ../shared/parity/family')
@pytest.mark.parametrize(
    'case',
    [case for case in CASES if case['system'] == 'distill_loss'],
    ids=lambda case: case['name'],
)
def test_deit_distillation_equals_public_code(case):
    given = {
        name: normal(case['seed'], name, shape).double() * case['input_scale']
        for name, shape in case['inputs'].items()
    }
    cls, dist = (given[k].requires_grad_() for k in ('cls', 'dist'))
    loss = deit_distillation(
        cls,
        None if case['single_head'] else dist,
        given['teacher'],
        base_of(case, cls),
        case['distill'],
        case['alpha'],
        case['tau'],
    )
    loss.backward()
    expect = case['expect']
    assert close(loss.detach(), expect['loss'])
    assert close(cls.grad, expect['grad_cls'])
    if 'grad_dist' in expect:
        assert close(dist.grad, expect['grad_dist'])


def test_batchmean_equals_equation():
    cls, teacher = torch.randn(2, 3, 7).double()
    kind = dict(kind='soft', alpha=1.0, tau=2.0)
    of_all, of_images = (
        deit_distillation(cls, None, teacher, 0, **kind, reduction=reduction)
        for reduction in ('mean', 'batchmean')
    )
    p, q = (x.div(2).softmax(1) for x in (cls, teacher))
    expected = 4 * (q * (q / p).log()).sum(1).mean()
    assert torch.allclose(of_images, expected)
    assert torch.allclose(7 * of_all, expected)
