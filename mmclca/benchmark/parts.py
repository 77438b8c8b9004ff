# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Where the time of a forward pass goes."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from statistics import median

from mmcv.cnn.bricks.transformer import FFN, PatchEmbed
from mmpretrain.models.classifiers import TimmClassifier
from mmpretrain.models.utils import (
    MultiheadAttention,
    SwiGLUFFN,
    SwiGLUFFNFused,
)
from timm.layers import LayerNorm, Mlp
from timm.layers import PatchEmbed as TimmPatchEmbed
from timm.models.vision_transformer import Attention
from torch import nn
from torch.utils.hooks import RemovableHandle

from mmclca.models import Reducible

from .candidates import Candidate
from .interleaved import Clock, clock_of, seconds_of
from .setting import Setting
from .steps import build, inference_step

OTHER = 'other'
PARTS = {
    'embedding': 'patches',
    'norm': 'LayerNorm of the layers and at the end',
    'projections': 'queries, keys and values, and the output of attention',
    'attention': 'products of queries and keys, softmax, values',
    'FFN': 'with its residual sum',
    'selection': "the reducer's hooks: before, between, key_bias, softmax",
    'cache': 'CLR tokens, what is cached and put back',
    'head': 'after the backbone',
    OTHER: 'positions, residual sums of attention, outputs, Python between',
}
# modules of mmpretrain's transformers and of timm's
KINDS = {
    **dict.fromkeys((nn.LayerNorm, LayerNorm), 'norm'),
    **dict.fromkeys((FFN, SwiGLUFFN, SwiGLUFFNFused, Mlp), 'FFN'),
    **dict.fromkeys((PatchEmbed, TimmPatchEmbed), 'embedding'),
}
# modules with the projections ``qkv`` and ``proj``
ATTENTIONS = (MultiheadAttention, Attention)


class PartTimer:
    """Books the time between marks to the part that runs in it.

    Of parts within each other the inner one counts.

    Args:
        clock (Clock): That of the model's device.
    """

    def __init__(self, clock: Clock):
        self.clock = clock
        self.running = [OTHER]
        self.marks = []

    def begin(self, part: str) -> None:
        """A part begins."""
        self.mark()
        self.running.append(part)

    def end(self) -> None:
        """The part that began last ends."""
        self.mark()
        self.running.pop()

    def mark(self) -> None:
        """Book the time since the last mark."""
        self.marks.append((self.running[-1], self.clock.mark()))

    def seconds(self) -> Counter:
        """Seconds of each part from the first mark to the last one."""
        self.clock.wait()
        total = Counter()
        for (_, start), (part, end) in pairwise(self.marks):
            total[part] += self.clock.seconds(start, end)
        return total

    def timed(self, part: str, function: Callable) -> Callable:
        """The function, its time booked to a part."""

        def call(*args, **kwargs):
            self.begin(part)
            result = function(*args, **kwargs)
            self.end()
            return result

        return call

    def hooks(self, module: nn.Module, part: str) -> Iterator[RemovableHandle]:
        """Hooks that book a module's forward pass to a part."""
        yield module.register_forward_pre_hook(lambda *_: self.begin(part))
        yield module.register_forward_hook(lambda *_: self.end())

    def attention_hooks(self, attn: nn.Module) -> Iterator[RemovableHandle]:
        """What lies between two projections is attention."""
        yield from self.hooks(attn.qkv, 'projections')
        yield attn.qkv.register_forward_hook(
            lambda *_: self.begin('attention')
        )
        yield attn.proj.register_forward_pre_hook(lambda *_: self.end())
        yield from self.hooks(attn.proj, 'projections')


@contextmanager
def timed_parts(model: nn.Module, timer: PartTimer):
    """Book the passes of a model to its parts; after that it is as it was."""
    with ExitStack() as stack:
        for handle in _hooks_of(model, timer):
            stack.enter_context(handle)
        for owner, name, part in _methods_of(model):
            setattr(owner, name, timer.timed(part, getattr(owner, name)))
            stack.callback(delattr, owner, name)
        yield


def _hooks_of(model: nn.Module, timer: PartTimer) -> Iterator[RemovableHandle]:
    of_timm = isinstance(model, TimmClassifier)
    backbone = model.model if of_timm else model.backbone
    for name, module in backbone.named_modules():
        if isinstance(module, ATTENTIONS):
            yield from timer.attention_hooks(module)
        elif type(module) in KINDS and not name.startswith('reducer.'):
            yield from timer.hooks(module, KINDS[type(module)])
    yield from timer.hooks((backbone if of_timm else model).head, 'head')
    if isinstance(backbone, Reducible) and backbone.cache is not None:
        yield from timer.hooks(backbone.cache, 'cache')


def _methods_of(model: nn.Module) -> Iterator[tuple[nn.Module, str, str]]:
    """Owner, name and part of methods that are no forward pass."""
    if isinstance(model, TimmClassifier):
        return
    backbone = model.backbone
    if isinstance(backbone, Reducible):
        for name in ('before', 'between', 'key_bias', 'softmax'):
            yield backbone.reducer, name, 'selection'
        if backbone.cache is not None:
            yield backbone.cache, 'start', 'cache'


def seconds_of_parts(
    candidate: Candidate, setting: Setting, rounds: int, warm_up: int
) -> tuple[dict[str, float], float]:
    """Medians of the seconds of each part of a forward pass.

    Passes with and without this timing are interleaved. On a GPU a part ends
    when the GPU has come to the end of it, which holds nothing up.

    Args:
        candidate (Candidate): A model, built here.
        setting (Setting): Device, batch and number format; eager.
        rounds (int): Timed passes.
        warm_up (int): Passes before these that are not counted.

    Returns:
        tuple[dict[str, float], float]: By the names of ``PARTS``, and the
        seconds of a pass whose parts are not timed.
    """
    model = build(candidate, setting.device)
    images = setting.images(candidate.size.img_size)
    step = inference_step(model, images, setting)
    clock = clock_of(setting)
    parts, whole = [], []
    for _ in range(warm_up + rounds):
        parts.append(_seconds_by_part(model, step, clock))
        whole.append(seconds_of(step, clock))
    counted = parts[warm_up:]
    medians = {part: median(one[part] for one in counted) for part in PARTS}
    return medians, median(whole[warm_up:])


def _seconds_by_part(model, step: Callable, clock: Clock) -> Counter:
    timer = PartTimer(clock)
    with timed_parts(model, timer):
        clock.wait()
        timer.mark()
        step()
        timer.mark()
    return timer.seconds()
