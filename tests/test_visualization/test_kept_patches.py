# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures of kept, merged, fused, dropped and mixed patches."""

import numpy as np
import pytest
import torch
from small_models import CACHE, build, classifier, images, vit

from mmclca.datasets.batches import View
from mmclca.visualization import (
    KeptPatches,
    check_reduces,
    find_kept_patches,
    legend,
    plot_kept_patches,
)
from mmclca.visualization.kept_patches import Stage, patches_left
from mmclca.visualization.painting import (
    DROPPED,
    FUSED,
    KEPT,
    MERGED,
    kinds,
    paint,
)

COLOURS = torch.tensor([[200, 0, 0], [0, 100, 0], [0, 0, 60], [80, 80, 80]])
GREY = np.full((12, 12, 3), 100, np.uint8)


def picture():
    """Image with one color per patch, on a 2 x 2 grid."""
    image = COLOURS.reshape(2, 2, 3).numpy().astype(np.uint8)
    return image.repeat(6, axis=0).repeat(6, axis=1)


def tokens(*rows):
    """Weights of four patches in CLS (zero) and the given tokens."""
    return torch.tensor([[0.0] * 4, *rows])


def colours(weights):
    """Painted colors in the middle of the four patches."""
    drawn = paint(picture(), weights, (2, 2))
    return [drawn[r, c].tolist() for r in (3, 9) for c in (3, 9)]


def stage(weights, image=GREY):
    return Stage('layer', weights, paint(image, weights, (2, 2)))


ALONE = tokens(*torch.eye(4).tolist())
MERGE = tokens([1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0.5, 0.5])
FUSE = tokens([1, 0, 0, 0], [0, 0.1, 0.1, 0])
MIX = torch.full((2, 4), 0.25)


@pytest.mark.parametrize(
    'weights, kept, contents, left, texts',
    [
        (ALONE, 1, '5 tokens\n4 kept', '', ['kept']),
        (ALONE[:3], 0.5, '3 tokens\n2 kept', '2 of 4 patches kept',
         ['kept', 'dropped']),
        (MERGE, 0.25, '4 tokens\n1 kept, 1 merged', '4 patches in 2 tokens',
         ['kept', 'merged', 'dropped']),
        (FUSE, 0.25, '3 tokens\n1 kept, 1 fused', '1 of 4 patches kept',
         ['kept', 'fused', 'dropped']),
        (MIX[:1], 0, '1 token\n0 kept, 1 merged', '4 patches in 1 token',
         ['merged']),
        (MIX, None, '2 tokens\nweights 0.25 to 0.25', '4 patches in 2 tokens',
         ['mixed']),
    ],
)  # fmt: skip
def test_stage_describes_its_tokens(weights, kept, contents, left, texts):
    one = stage(weights)
    assert one.kept == kept and one.contents == contents
    assert patches_left(weights) == left
    swatches = legend([KeptPatches('', GREY, (2, 2), [one])])
    assert len(swatches) == len(texts)
    for swatch, text in zip(swatches, texts, strict=True):
        assert swatch.label.startswith(text)


def test_kinds_distinguish_kept_merged_fused_and_dropped():
    weights = torch.zeros(5, 8)
    weights[1, 0] = weights[2, 4] = 1
    weights[3, 1:3] = 0.5
    weights[4, 5:7] = 0.2
    wanted = [KEPT, MERGED, MERGED, DROPPED, KEPT, FUSED, FUSED, DROPPED]
    assert kinds(weights).tolist() == wanted
    # cluster with a single patch of low importance in DPC-KNN
    weights[1, 0] = 0.3
    assert kinds(weights)[0] == KEPT


def test_paint_merges_colors_and_draws_a_border():
    weights = tokens([0.75, 0.25, 0, 0], [0, 0, 0.5, 0.5])
    assert colours(weights) == [[150, 25, 0]] * 2 + [[40, 40, 70]] * 2
    drawn = paint(picture(), weights, (2, 2))
    assert (drawn[5] == 25).all()
    assert (drawn[:5, 5] == (150, 25, 0)).all()  # no border within a group


def test_paint_draws_mixed_patches_as_heat():
    weights = tokens([0.1, 0.2, 0.3, 0.4], [0.4, 0.2, 0.1, 0.3])
    heat = [sum(colour) for colour in colours(weights)]
    assert heat[0] > heat[2] > heat[1] and heat[3] > heat[2]
    even = paint(GREY, MIX, (2, 2))
    assert (even == even[0, 0]).all()
    hardly = MIX.clone()
    hardly[1, 0] += 1e-4  # 4 in 10,000
    drawn = paint(GREY, hardly, (2, 2)).astype(int)
    assert 0 < abs(drawn - even).max() < 6


@pytest.mark.parametrize(
    'cache, said',
    [
        # one average and one CLR token per layer: layer 0, then 1 and 2
        (CACHE, ['18 tokens\n16 kept\n1 cached, 2 restored',
                 '20 tokens\n16 kept\n3 cached, 4 restored']),
        (None, ['17 tokens\n16 kept'] * 2),
    ],
)  # fmt: skip
def test_figure_has_a_panel_per_stage_at_keep_rate_one(cache, said):
    reducer = dict(type='mmclca.TopK', keep_rate=1.0)
    backbone = vit(6, reducer=reducer, reduce_at=(1, 3), cache=cache)
    view = View('leaf', np.zeros((64, 64, 3), np.uint8), images(1))
    found = find_kept_patches(build(classifier(backbone)).eval(), [view, view])
    assert [one.contents for one in found[0].stages] == said
    figure = plot_kept_patches(found)
    shown = ['4 x 4 patches', *said]
    titles = [axis.get_title() for axis in figure.axes]
    headed = [shown[0], *map('after layer {}\n{}'.format, (1, 3), said)]
    assert titles == headed + shown
    (texts,) = figure.legends
    (text,) = texts.texts
    assert text.get_text().startswith('kept')


def test_figure_has_a_color_bar_for_mixed_patches():
    figure = plot_kept_patches(
        [KeptPatches('', GREY, (2, 2), [stage(MIX), stage(FUSE)])]
    )
    labels = [axis.get_xlabel() for axis in figure.axes]
    assert [*filter(None, labels)] == ['largest token weight per patch']
    assert len(figure.legends[0].texts) == 3


def test_check_reduces_refuses_models_without_reduction():
    with pytest.raises(ValueError, match='reduce_at'):
        check_reduces(build(vit(2)))
