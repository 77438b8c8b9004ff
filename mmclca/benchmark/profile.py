# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Where the time of a forward pass goes, by PyTorch's profiler."""

import os
import re
from collections import defaultdict
from collections.abc import Iterator

from torch import nn
from torch.autograd import DeviceType
from torch.profiler import profile, record_function

from mmclca.models import Reducible

from .candidates import Candidate
from .steps import Setting, build, inference_step

PARTS = (
    *('embedding', 'norm', 'projections', 'attention', 'FFN', 'selection'),
    *('cache', 'head', 'other'),
)
# names of the modules of a part, in our models, mmpretrain's and timm's
MODULES = {
    'embedding': r'\w+\.patch_embed',
    'norm': r'\w+\.(\w+\.\d+\.)*(ln\d|norm\d?)',
    'projections': r'\w+\.(\w+\.\d+\.)+attn\.(qkv|proj)',
    'FFN': r'\w+\.(\w+\.\d+\.)+(ffn|mlp)',
    'cache': r'backbone\.cache',
    'head': r'(model\.)?head',
}
HOOKS = ('before', 'between', 'key_bias', 'softmax')
ATTENTION, WHOLE = 'aten::scaled_dot_product_attention', 'whole'


def seconds_of_parts(
    candidate: Candidate, setting: Setting, rounds: int, warm_up: int
) -> dict[str, float]:
    """Mean seconds of each part of a forward pass.

    Args:
        candidate (Candidate): A model, built here.
        setting (Setting): Device, batch and number format; eager. On a GPU
            these are the seconds of its kernels.
        rounds (int): Passes that count.
        warm_up (int): Passes before these.
    """
    model = build(candidate, setting.device)
    for owner, name, part in _calls(model):
        setattr(owner, name, record_function(part)(getattr(owner, name)))
    images = setting.images(candidate.size.img_size)
    step = record_function(WHOLE)(inference_step(model, images, setting))
    for _ in range(warm_up):
        step()
    os.environ.setdefault('KINETO_LOG_LEVEL', '99')  # it tells of its start
    with profile() as profiler:
        for _ in range(rounds):
            step()
    total = defaultdict(float)
    for one in profiler.key_averages():
        if one.device_type == DeviceType.CPU:
            on_gpu, on_cpu = one.device_time_total, one.cpu_time_total
            total[one.key] += on_gpu if setting.on_gpu else on_cpu
    total['attention'] = total[ATTENTION]
    total['other'] = total[WHOLE] - sum(total[part] for part in PARTS)
    return {part: total[part] / rounds / 1e6 for part in PARTS}


def _calls(model: nn.Module) -> Iterator[tuple[nn.Module, str, str]]:
    """Owner, name and part of the methods that are recorded."""
    for name, module in model.named_modules():
        for part, pattern in MODULES.items():
            if re.fullmatch(pattern, name):
                yield module, 'forward', part
        if isinstance(module, Reducible):
            for hook in HOOKS:
                yield module.reducer, hook, 'selection'
            if module.cache is not None:
                yield module.cache, 'start', 'cache'
