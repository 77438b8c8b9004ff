# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Where the time of a forward pass goes."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median

from mmcv.cnn.bricks.transformer import FFN, PatchEmbed
from mmpretrain.models.classifiers import TimmClassifier
from mmpretrain.models.utils import (
    MultiheadAttention,
    SwiGLUFFN,
    SwiGLUFFNFused,
)
from torch import nn

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
# modules of mmpretrain's transformers
KINDS = {
    nn.LayerNorm: 'norm',
    FFN: 'FFN',
    SwiGLUFFN: 'FFN',
    SwiGLUFFNFused: 'FFN',
    PatchEmbed: 'embedding',
}


class Watch:
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
        last = self.marks[0][1]
        for part, mark in self.marks:
            total[part] += self.clock.seconds(last, mark)
            last = mark
        return total

    def timed(self, part: str, function: Callable) -> Callable:
        """The function, its time booked to a part."""

        def call(*args, **kwargs):
            self.begin(part)
            result = function(*args, **kwargs)
            self.end()
            return result

        return call

    def opened(self, attn: nn.Module) -> Iterator[tuple]:
        """What lies between two projections is attention."""
        qkv = self.timed('projections', attn.qkv.forward)
        proj = self.timed('projections', attn.proj.forward)

        def first(x):
            x = qkv(x)
            self.begin('attention')
            return x

        def last(x):
            self.end()
            return proj(x)

        yield attn.qkv, 'forward', first
        yield attn.proj, 'forward', last


def functions_of(model: nn.Module) -> Iterator[tuple]:
    """Owner, name and part of what is timed, but for attention."""
    if isinstance(model, TimmClassifier):
        vit = model.model
        for block in vit.blocks:
            yield block.norm1, 'forward', 'norm'
            yield block.norm2, 'forward', 'norm'
            yield block.mlp, 'forward', 'FFN'
        yield vit.norm, 'forward', 'norm'
        yield vit.patch_embed, 'forward', 'embedding'
        yield vit.head, 'forward', 'head'
        return
    backbone = model.backbone
    for name, module in backbone.named_modules():
        part = KINDS.get(type(module))
        if part and not name.startswith('reducer.'):
            yield module, 'forward', part
    yield model.head, 'forward', 'head'
    if isinstance(backbone, Reducible):
        yield from _functions_of_reduction(backbone)


def _functions_of_reduction(backbone: Reducible) -> Iterator[tuple]:
    for name in ('before', 'between', 'key_bias', 'softmax'):
        yield backbone.reducer, name, 'selection'
    if backbone.cache is not None:
        yield backbone.cache, 'start', 'cache'
        yield backbone.cache, 'forward', 'cache'


def attentions_of(model: nn.Module) -> list[nn.Module]:
    """Modules with the projections ``qkv`` and ``proj``."""
    if isinstance(model, TimmClassifier):
        return [block.attn for block in model.model.blocks]
    modules = model.backbone.modules()
    return [one for one in modules if isinstance(one, MultiheadAttention)]


@contextmanager
def _replaced(owner: nn.Module, name: str, function: Callable):
    """A method of one module is another function for a while."""
    setattr(owner, name, function)
    try:
        yield
    finally:
        delattr(owner, name)


@contextmanager
def watched(model: nn.Module, watch: Watch):
    """The model's parts report to the watch; its code is as it was."""
    with ExitStack() as stack:
        for owner, name, part in functions_of(model):
            timed = watch.timed(part, getattr(owner, name))
            stack.enter_context(_replaced(owner, name, timed))
        for attn in attentions_of(model):
            for owner, name, function in watch.opened(attn):
                stack.enter_context(_replaced(owner, name, function))
        yield


def seconds_of_parts(
    candidate: Candidate, setting: Setting, rounds: int, warm_up: int
) -> tuple[dict[str, float], float]:
    """Medians of the seconds of each part of a forward pass.

    Watched passes and others take turns. On a GPU a part ends when the GPU
    has come to the end of it, which holds nothing up.

    Args:
        candidate (Candidate): A model, built here.
        setting (Setting): Device, batch and number format; eager.
        rounds (int): Timed passes.
        warm_up (int): Passes before these that are not counted.

    Returns:
        tuple[dict[str, float], float]: By the names of ``PARTS``, and the
        seconds of a pass that nothing watches.
    """
    model = build(candidate, setting.device)
    images = setting.images(candidate.size.img_size)
    step = inference_step(model, images, setting)
    clock = clock_of(setting)
    parts, whole = [], []
    for _ in range(warm_up + rounds):
        parts.append(_watched_pass(model, step, clock))
        whole.append(seconds_of(step, clock))
    counted = parts[warm_up:]
    medians = {part: median(one[part] for one in counted) for part in PARTS}
    return medians, median(whole[warm_up:])


def _watched_pass(model, step: Callable, clock: Clock) -> Counter:
    watch = Watch(clock)
    with watched(model, watch):
        clock.wait()
        watch.mark()
        step()
        watch.mark()
    return watch.seconds()
