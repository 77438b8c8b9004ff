# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from torch import nn

from mmclca.registry import OPTIM_WRAPPERS


def test_forward_in_bfloat16_and_parameters_in_float32():
    torch.manual_seed(0)
    net, x = nn.Linear(4, 2), torch.randn(3, 4)
    before = net.weight.detach().clone()
    wrapper = OPTIM_WRAPPERS.build(
        dict(
            type='mmclca.BF16OptimWrapper',
            optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
        )
    )
    with wrapper.optim_context(net):
        out = net(x)
    assert out.dtype == torch.bfloat16
    wrapper.update_params(out.float().square().mean())
    assert net.weight.dtype == torch.float32
    assert not torch.equal(net.weight, before)
    assert net(x).dtype == torch.float32
