# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Patches and cached tokens per stage; attention per layer."""

import torch
import toy_backbones  # noqa: F401, registers them
from small_models import build, classifier, images, traced, vit
from torch.testing import assert_close

from mmclca.models.recording import (
    AttentionRecorder,
    assigned,
    cached_by_stage,
    patch_weight_maps,
    recording_copy,
    stage_weights,
)
from mmclca.models.reduction.attention import project_qkv
from mmclca.models.reduction.trace import Appended, Kept, Merged, Unchanged


def test_patch_weight_maps_per_stage():
    # Tokens 1 to 4 are patches. The first reduction keeps patches 2 and 0 and
    # fuses 1 and 3; two cached tokens are added; the second reduction keeps
    # patch 0 only; the third keeps all tokens.
    mix = torch.tensor([[[0.0, 0.0, 0.3, 0.0, 0.2]]])
    trace = [
        Kept(torch.tensor([[0, 3, 1]]), mix),
        *(Appended(2), Kept(torch.tensor([[0, 2]])), Unchanged()),
    ]
    first, second, third = patch_weight_maps(traced(trace, 1, 4), (2, 2))
    assert_close(first, torch.tensor([[[1.0, 0.3], [1.0, 0.2]]]))
    assert_close(second, torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]))
    assert_close(third, second)


def test_assigned_token_is_the_first_maximum_or_missing():
    trace = [
        Kept(torch.tensor([[0, 4, 2]])),
        Merged(torch.tensor([[0, 1, 1]]), torch.tensor([[1.0, 0.5, 0.5]]), 2),
        Kept(torch.tensor([[0, 1, 1]])),  # equal shares: the first token
    ]
    stages = stage_weights(traced(trace, 1, 4))
    kept, *merged = [assigned(weights).tolist() for weights in stages]
    assert kept == [[-1, 2, -1, 1]]
    assert merged == [[[-1, 1, -1, 1]]] * 2


def test_cached_tokens_are_counted_per_stage():
    # [CLS | two patches | register | CLR], then [CLS | patch | CLR | two
    # restored]; then one token is fused and one dropped
    first = torch.tensor([[0, 2, 4], [0, 1, 2]])
    last = torch.tensor([[0, 1, 1, 2, 3]] * 2)
    trace = [
        *(Appended(1, cached=False), Appended(1)),
        *(Kept(first), Appended(2)),
        *(Unchanged(), Merged(last, torch.full((2, 5), 0.5), 4)),
        Kept(torch.tensor([[0, 1], [0, 3]])),
    ]
    # (left, restored); a token merged with a patch is not counted
    wanted = [[(1, 2), (0, 2)], [(3, 0), (2, 0)], [(2, 0)] * 2]
    assert cached_by_stage(traced(trace, 2, 2)) == [*wanted, [(0, 0), (1, 0)]]


def test_registers_are_not_counted_as_cached():
    trace = [Appended(3, cached=False), Kept(torch.tensor([[0, 1, 3, 4]]))]
    assert cached_by_stage(traced(trace, 1, 4)) == []
    trace.insert(1, Appended(1))
    assert cached_by_stage(traced(trace, 1, 4)) == [[(0, 0)]]


def test_recorded_attention_equals_softmax_of_each_layer():
    model = build(classifier(vit(2))).eval()
    copied, x = recording_copy(model, AttentionRecorder), images()
    with torch.no_grad():
        assert torch.equal(copied(x), model(x))
        for record, layer in zip(
            copied.backbone.recorder.layers, model.backbone.layers, strict=True
        ):
            seen = project_qkv(layer.attn, layer.ln1(record.entered.features))
            weights = (seen.q @ seen.k.mT / 8**0.5).softmax(-1)
            assert_close(record.attn, weights.mean(dim=1))


def test_attention_is_recorded_if_backbone_ignores_softmax():
    backbone = dict(type='mmclca.ToyReducible', channels=16)
    model = build(classifier(backbone)).eval()
    block = model.backbone.attention_block

    def ignore_softmax(layer, tokens, key_bias, softmax):
        return block(layer, tokens, key_bias, None)

    model.backbone.attention_block = ignore_softmax
    copied = recording_copy(model, AttentionRecorder)
    copied(images())
    shapes = [layer.attn.shape for layer in copied.backbone.recorder.layers]
    assert shapes == [(2, 18, 18)] * 3
