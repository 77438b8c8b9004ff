# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
import torch
from matplotlib.colors import rgb_to_hsv
from matplotlib.figure import Figure
from small_models import CACHE, build, images, traced, vit

from mmclca.datasets.batches import View
from mmclca.models.reduction.trace import Kept, Merged
from mmclca.visualization import (
    Reduced,
    assignment_maps,
    draw_reductions,
    kinds,
    paint,
    reduced,
    reductions_figure,
    stage_weights,
)
from mmclca.visualization.painting import (
    DROPPED,
    FUSED,
    KEPT,
    MERGED,
    own_tokens,
)
from mmclca.visualization.reductions import patches_left

COLOURS = torch.tensor([[200, 0, 0], [0, 100, 0], [0, 0, 60], [80, 80, 80]])


def picture(patch=6):
    """Four patches of one colour each, on a grid of 2 x 2."""
    image = COLOURS.reshape(2, 2, 3).numpy().astype(np.uint8)
    return image.repeat(patch, axis=0).repeat(patch, axis=1)


def colour(drawn, patch, size=6):
    """Colour in the middle of a patch, where no border is."""
    row, column = divmod(patch, 2)
    return drawn[row * size + size // 2, column * size + size // 2].tolist()


def test_dropped_patches_get_no_token_and_equal_ones_the_first():
    trace = [
        Kept(torch.tensor([[0, 4, 2]])),
        Merged(torch.tensor([[0, 1, 1]]), torch.tensor([[1.0, 0.5, 0.5]]), 2),
    ]
    kept, merged = assignment_maps(traced(trace, 1, 4), (2, 2))
    assert kept.tolist() == [[[-1, 2], [-1, 1]]]
    assert merged.tolist() == [[[-1, 1], [-1, 1]]]
    # the patches of one token in equal shares: the first of the tokens
    trace.append(Kept(torch.tensor([[0, 1, 1]])))
    assert (
        assignment_maps(traced(trace, 1, 4), (2, 2))[-1].tolist()
        == kept[:, [0, 0]].clamp(max=1).tolist()
    )


def test_kept_patches_stay_clear_and_dropped_ones_fade():
    weights = torch.zeros(3, 4)
    weights[1, 0] = weights[2, 3] = 1
    drawn = paint(picture(), weights, (2, 2))
    assert np.array_equal(drawn[:6, :6], picture()[:6, :6])
    assert np.array_equal(drawn[6:, 6:], picture()[6:, 6:])
    for patch in (1, 2):
        assert min(colour(drawn, patch)) > 175


def test_merged_patches_take_their_mean_colour_and_a_border():
    weights = torch.zeros(3, 4)
    weights[1, :2] = torch.tensor([0.75, 0.25])
    weights[2, 2:] = 0.5
    drawn = paint(picture(), weights, (2, 2))
    assert colour(drawn, 0) == colour(drawn, 1) == [150, 25, 0]
    assert colour(drawn, 2) == colour(drawn, 3) == [40, 40, 70]
    border = drawn[5]
    assert (border == 25).all()
    assert (drawn[:5, 5] == (150, 25, 0)).all()  # none within a group


@pytest.mark.parametrize('paper', [(240, 130, 170), (250, 250, 250)])
def test_fused_patches_are_of_the_blue_of_the_legend(paper):
    image = np.full((12, 12, 3), paper, np.uint8)
    weights = torch.zeros(2, 4)
    weights[1] = 0.05
    drawn = paint(image, weights, (2, 2))[0, 0] / 255
    (swatch,) = legend_of(image, weights).get_patches()
    hues = rgb_to_hsv([drawn, swatch.get_facecolor()[:3]])[:, 0]
    assert hues[0] == pytest.approx(hues[1], abs=0.02)
    red, _, blue = drawn
    assert blue - red > 0.3


def legend_of(image, *stages):
    row = Reduced('', image, (2, 2), list(stages))
    (legend,) = reductions_figure([row], 'ab'[: len(stages)]).legends
    return legend


def test_patches_left():
    alone = torch.nn.functional.pad(torch.eye(4), (0, 0, 1, 0))
    assert patches_left(alone) == ''
    assert patches_left(alone[:3]) == '2 of 4 patches left'
    fused = torch.zeros(3, 4)
    fused[1, 0] = 1
    fused[2, 1:] = 0.1
    assert patches_left(fused) == '1 of 4 patches left'
    merged = torch.zeros(3, 4)
    merged[1, :2] = merged[2, 2:] = 0.5
    assert patches_left(merged) == '4 patches in 2 tokens'
    assert patches_left(torch.full((1, 4), 0.25)) == '4 patches in 1 token'
    mixed = torch.full((2, 4), 0.25)
    assert patches_left(mixed) == '4 patches in 2 tokens'


def test_tokens_that_patches_share_are_no_own_tokens():
    weights = torch.zeros(4, 4)
    weights[1, 0] = 1
    weights[2, 1] = 1 / (1 + 1e-6)  # a cluster of one patch in DPC-KNN
    weights[3, 2:] = 0.5
    own = own_tokens(weights)
    assert torch.equal(own[:3], weights[:3]) and not own[3].any()
    drawn = paint(picture(), own, (2, 2))
    assert np.array_equal(drawn[:6], picture()[:6])
    assert drawn[6:].min() > 175  # faded


def test_kept_only_says_what_share_is_left(monkeypatch):
    figures = []
    keep = lambda figure, *_, **__: figures.append(figure)  # noqa: E731
    monkeypatch.setattr(Figure, 'savefig', keep)
    whole = torch.nn.functional.pad(torch.eye(4), (0, 0, 1, 0))
    fused = torch.zeros(2, 4)
    fused[1] = 0.1
    rows = [
        Reduced('a', picture(), (2, 2), [whole, whole[:3]]),
        Reduced('b', picture(), (2, 2), [whole, fused]),
    ]
    draw_reductions(rows, 'out.png', ['one', 'two'], kept_only=True)
    (figure,) = figures
    above = ['image\nall patches', 'one\n100 % kept', 'two\n25 % kept']
    assert words(figure) == ([], [], [*above, '', '', ''])
    shown = [axis.images[0].get_array() for axis in figure.axes]
    assert np.array_equal(shown[1], picture())
    assert shown[5].min() > 175  # of the second image nothing is left


def test_kinds_of_patches():
    weights = torch.zeros(5, 8)
    weights[1, 0] = weights[2, 4] = 1
    weights[3, 1:3] = 0.5
    weights[4, 5:7] = 0.2
    kept, merged, fused, dropped = KEPT, MERGED, FUSED, DROPPED
    assert kinds(weights).tolist() == [
        *(kept, merged, merged, dropped),
        *(kept, fused, fused, dropped),
    ]
    # a cluster of one patch in DPC-KNN, of very low importance
    weights[1, 0] = 0.3
    assert kinds(weights)[0] == kept


def test_mixtures_are_drawn_as_heat():
    weights = torch.zeros(3, 4)
    weights[1] = torch.tensor([0.1, 0.2, 0.3, 0.4])
    weights[2] = torch.tensor([0.4, 0.2, 0.1, 0.3])
    drawn = paint(picture(), weights, (2, 2)).sum(axis=2, dtype=int)
    heat = [int(drawn[3, 3]), int(drawn[3, 9]), int(drawn[9, 9])]
    assert heat[0] > heat[1] and drawn[9, 9] > drawn[9, 3] > 0


def test_heat_of_equal_weights_is_even():
    grey = np.full((12, 12, 3), 100, np.uint8)
    flat = torch.full((3, 4), 0.25)
    even = paint(grey, flat, (2, 2))
    assert (even == even[0, 0]).all()
    flat[1, 0] += 1e-4  # 4 in 10,000
    drawn = paint(grey, flat, (2, 2)).astype(int)
    assert 0 < abs(drawn - even).max() < 6


@pytest.mark.parametrize('keep_rate', [0.5, 1.0])
def test_each_stage_has_an_entry_even_where_nothing_is_reduced(keep_rate):
    reducer = dict(type='mmclca.EViT', keep_rate=keep_rate)
    backbone = build(vit(6, reducer=reducer, reduce_at=(1, 3), cache=CACHE))
    backbone.eval()
    with torch.inference_mode():
        _, tokens = backbone.forward_tokens(images(2))
    stages = stage_weights(tokens)
    lengths = [len(weights[0]) for weights in stages]
    # at keep rate 1: CLS, 16 patches, CLR; two cached
    assert lengths == ([18, 20] if keep_rate == 1 else [11, 8])


def words(figure):
    """Of legends and colour bars, and the titles of pictures."""
    legends = [t.get_text() for one in figure.legends for t in one.texts]
    labels = [axis.get_xlabel() for axis in figure.axes]
    titles = [axis.get_title() for axis in figure.axes]
    return legends, [label for label in labels if label], titles


def test_legend_names_what_occurs_and_nothing_else():
    image = np.full((20, 20, 3), 90, np.uint8)
    weights = torch.zeros(3, 4)
    weights[1, 0] = 1
    weights[2, 1:3] = 0.1

    def legend(*stages):
        row = Reduced('', image, (2, 2), list(stages))
        return words(reductions_figure([row], 'ab'[: len(stages)]))[:2]

    kept = 'kept: as photographed'
    kept_fused_dropped = [kept, 'fused with small weights', 'dropped']
    assert legend(weights) == (kept_fused_dropped, [])
    weights = torch.full((3, 4), 0.25)
    bar = ['largest weight of a patch in a token']
    assert legend(weights) == ([], bar)
    weights[:2] = 0
    merged = ['merged: mean colour of a group']
    assert legend(weights) == (merged, [])
    assert legend(weights, torch.full((3, 4), 0.25)) == (merged, bar)


def test_cached_tokens_are_noted():
    reducer = dict(type='mmclca.TopK', keep_rate=1.0)
    backbone = build(vit(6, reducer=reducer, reduce_at=(1, 3), cache=CACHE))
    view = View('leaf', np.zeros((32, 32, 3), np.uint8), images(1))
    (row,) = reduced(backbone.eval(), [view])
    titles = words(reductions_figure([row], ['one', 'two']))[2]
    # an average and a CLR token a layer, of layer 0, then of 1 and 2
    assert titles[1] == 'one\n18 tokens: 16 kept\n1 cached, then 2 put back'
    assert titles[2] == 'two\n20 tokens: 16 kept\n3 cached, then 4 put back'
    backbone = build(vit(6, reducer=reducer, reduce_at=(1, 3)))
    (row,) = reduced(backbone.eval(), [view])
    assert (
        words(reductions_figure([row], 'ab'))[2][1] == 'a\n17 tokens: 16 kept'
    )


def test_tokens_are_told_apart():
    image = np.full((20, 20, 3), 90, np.uint8)
    merged, fused = torch.zeros(4, 4), torch.zeros(3, 4)
    merged[1, 0] = 1
    merged[2, 1] = 1
    merged[3, 2:] = 0.5
    fused[2] = 0.1
    mixed = torch.full((3, 4), 0.25)
    row = Reduced('', image, (2, 2), [merged, fused, mixed])
    titles = words(reductions_figure([row], 'abc'))[2]
    assert titles[1] == 'a\n4 tokens: 2 kept, 1 merged'
    assert titles[2] == 'b\n3 tokens: 0 kept, 1 fused'
    assert titles[3].startswith('c\n3 tokens\nweights')
