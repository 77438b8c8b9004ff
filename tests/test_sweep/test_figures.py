# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import warnings

import numpy as np
import pytest
from matplotlib.colors import same_color
from PIL import Image
from sweep_results import result, seeds, sweep

from mmclca.sweep.figures import (
    draw_costs,
    draw_gradients,
    draw_methods,
    draw_parts,
    write_figures,
)
from mmclca.sweep.figures.style import COLOURS, save
from mmclca.sweep.missing import MissingResultsError


def only(figures):
    """The axes of the one figure."""
    (figure,) = figures
    return figure.axes


def bars(axis):
    """Points and ends of bars of each line of Fig. 1, by its label."""
    found = {}
    for container in axis.containers:
        line, _, (segments,) = container.lines
        ends = [
            segment.reshape(-1, 2)[:, 1].tolist()
            for segment in segments.get_segments()
        ]
        found[container.get_label()] = line, line.get_xydata().tolist(), ends
    return found


def labels(axis):
    """Texts within an axes."""
    return [text.get_text() for text in axis.texts]


def legend_labels(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def strips(axis):
    """Accuracies of each strip of dots of Fig. 3, by method and kind."""
    names = [tick.get_text() for tick in axis.get_xticklabels()]
    found = {}
    for line in axis.lines:
        if line.get_marker() == 'o':
            place = np.mean(line.get_xdata())
            method = names[round(place)]
            kind = 'base' if place < names.index(method) else 'clca'
            assert same_color(line.get_color(), COLOURS[kind])
            found[method, kind] = sorted(line.get_ydata())
    return found


def test_costs_lie_where_the_results_are():
    (axis,) = only(draw_costs(sweep()))
    lines = bars(axis)
    assert lines.keys() == {
        f'{method} 224 {kind}'
        for method in ('EViT', 'SiT')
        for kind in ('base', 'clca')
    }
    line, points, ends = lines['EViT 224 base']
    assert points == [[1.2, 91.0], [0.5, 82.0]]
    half, twice = np.sqrt(2), np.sqrt(8)  # deviations of 90, 92 and 80, 84
    assert np.allclose(
        ends, [[91 - half, 91 + half], [82 - twice, 82 + twice]]
    )
    assert same_color(line.get_color(), COLOURS['base'])
    assert same_color(line.get_markerfacecolor(), 'white')
    line, points, _ = lines['EViT 224 clca']
    assert points == [[1.21, 91.5], [0.51, 88.0]]
    assert same_color(line.get_markerfacecolor(), COLOURS['clca'])
    assert lines['SiT 224 clca'][1] == [[0.61, 80.5]]
    assert axis.get_xlabel() == 'GMACs'
    assert axis.get_ylabel() == 'top-1 accuracy (%)'
    assert axis.get_title() == 'leaf40, deit-tiny-p16'
    low, high = axis.get_ylim()
    assert low < 74 - np.sqrt(32) and high > 91.5 + np.sqrt(2)


def test_keep_rates_stand_above_the_highest_point():
    (axis,) = only(draw_costs(sweep()))
    places = {text.get_text(): text.xy for text in axis.texts}
    assert places['25'] == pytest.approx((0.51, 88 + np.sqrt(2)))
    assert places['100'] == pytest.approx((1.2, 91 + np.sqrt(2)))


def test_keep_rates_stand_above_lines_not_above_lone_points():
    results = sweep() + [result(99.0, method='ToMe', gmacs=0.7)]
    (axis,) = only(draw_costs(results))
    places = {text.get_text(): text.xy for text in axis.texts}
    assert places['25'] == pytest.approx((0.51, 88 + np.sqrt(2)))


def test_labels_of_keep_rates_do_not_overlap():
    rates = [rate / 100 for rate in range(5, 100, 5)]
    results = [
        result(80 + rate, keep_rate=rate, gmacs=1 + rate) for rate in rates
    ]
    (figure,) = draw_costs(results)
    figure.draw_without_rendering()
    texts = figure.axes[0].texts
    boxes = [text.get_window_extent() for text in texts]
    assert 2 < len(boxes) < len(rates)
    assert not any(
        a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i]
    )


def test_one_seed_has_no_bar():
    results = [result(80.0), result(85.0, keep_rate=0.5, gmacs=0.8)]
    (figure,) = draw_costs(results)
    _, points, ends = bars(figure.axes[0])['EViT 224 base']
    assert sorted(points) == [[0.5, 80.0], [0.8, 85.0]]
    assert ends == [[], []]
    assert '1 seed,' in figure.legends[0].get_title().get_text()


def test_a_panel_a_data_set_and_lines_a_size():
    results = [
        result(
            70.0 + rate,
            dataset=name,
            keep_rate=rate,
            size=size,
            gmacs=size * rate,
        )
        for name in ('soygene', 'leaf40')
        for rate in (0.5, 1.0)
        for size in (224, 448)
    ]
    (figure,) = draw_costs([*results, result(variant='slow')])
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == [
        'leaf40, deit-tiny-p16',
        'leaf40, deit-tiny-p16, slow',
        'SoyGene, deit-tiny-p16',
    ]
    lines = bars(figure.axes[2])
    assert lines.keys() == {'EViT 224 base', 'EViT 448 base'}
    small, large = (line.get_markersize() for line, _, _ in lines.values())
    assert small < large
    assert legend_labels(figure) == ['base', 'EViT', '224 px', '448 px']


def test_ten_panels_take_two_pages():
    results = [
        result(backbone=f'vit-{i}', keep_rate=rate, gmacs=rate)
        for i in range(10)
        for rate in (0.5, 1.0)
    ]
    pages = draw_costs(results)
    assert [len(page.axes) for page in pages] == [9, 1]


def test_ablations_are_not_among_the_costs():
    results = [result(clca='cla'), result(clca='clc', gmacs=0.6)]
    with pytest.raises(MissingResultsError, match="clca='base'"):
        draw_costs(results)
    with pytest.raises(MissingResultsError, match='two costs'):
        draw_costs([result(), *results])
    with pytest.raises(MissingResultsError, match='two costs'):
        draw_costs([result(), result(size=448, dataset='soygene', gmacs=2)])


def test_methods_are_compared_at_the_settings_that_all_have():
    more = [
        *seeds(10.0, 11.0, keep_rate=0.1),
        *seeds(12.0, 13.0, keep_rate=0.1, clca='clca'),
        result(14.0, size=448),
        result(15.0, size=448, clca='clca'),
    ]
    (figure,) = draw_methods([*sweep(), *more])
    (axis,) = figure.axes
    assert strips(axis) == {
        ('none', 'base'): [90.0, 92.0],
        ('none', 'clca'): [91.0, 92.0],
        ('EViT', 'base'): [80.0, 84.0],
        ('EViT', 'clca'): [87.0, 89.0],
        ('SiT', 'base'): [70.0, 78.0],
        ('SiT', 'clca'): [80.0, 81.0],
    }
    names = [tick.get_text() for tick in axis.get_xticklabels()]
    assert names == ['none', 'EViT', 'SiT']
    assert axis.get_title() == 'leaf40: keep rate 25 %'
    assert legend_labels(figure) == ['base', 'CLCA']


def test_medians_and_boxes():
    base, clca = [50.0, 60.0, 61.0, 62.0, 90.0], [70.0, 71.0, 75.0]
    (axis,) = only(draw_methods([*seeds(*base), *seeds(*clca, clca='clca')]))
    medians = [
        segment[0][1]
        for collection in axis.collections
        for segment in collection.get_segments()
    ]
    assert medians == [61.0, 71.0]
    boxes = [
        sorted(set(line.get_ydata()))
        for line in axis.lines
        if len(line.get_xdata()) == 5 and line.get_marker() != 'o'
    ]
    assert boxes == [[60.0, 62.0]]  # three runs get none


def test_dots_of_a_strip_stay_apart():
    values = [80.0] * 40
    (axis,) = only(
        draw_methods([*seeds(*values), *seeds(*values, clca='clca')])
    )
    base, clca = (
        sorted(line.get_xdata())
        for line in axis.lines
        if line.get_marker() == 'o'
    )
    assert len(set(base)) == 40 and max(base) < 0 < min(clca)


def test_keep_rate_1_of_methods_that_still_do_something():
    rest = dict(method='SiT', keep_rate=1.0)
    results = [
        *sweep(),
        result(99.0, **rest),
        result(99.5, clca='clca', **rest),
    ]
    found = strips(only(draw_methods(results))[0])
    assert found['none', 'base'] == [90.0, 92.0]
    assert found['SiT', 'base'] == [70.0, 78.0]  # others have no such runs


@pytest.mark.parametrize(
    ('results', 'missing'),
    [
        ([result(), result(method='SiT')], "with 'clca'"),
        (
            [result(), result(keep_rate=0.5, clca='clca')],
            'at one backbone, size and keep rate',
        ),
        (
            [result(keep_rate=1), result(keep_rate=1, clca='clca')],
            'keep rate below 1',
        ),
    ],
)
def test_methods_that_cannot_be_compared(results, missing):
    with pytest.raises(MissingResultsError, match=missing):
        draw_methods(results)


def test_gradients_are_means_and_ranges_over_seeds():
    results = [
        result(80.0, seed=1, gradients=(4.0, 1.0, 0.5)),
        result(85.0, seed=2, gradients=(8.0, 3.0, 0.1)),
        result(90.0, seed=1, clca='clca', gradients=(2.0, 1.0, 0.3)),
    ]
    (figure,) = draw_gradients(results)
    (axis,) = figure.axes
    base, clca = axis.lines
    assert base.get_xydata().tolist() == [[1, 6.0], [2, 2.0], [3, 0.3]]
    assert clca.get_xydata().tolist() == [[1, 2.0], [2, 1.0], [3, 0.3]]
    assert same_color(base.get_color(), COLOURS['base'])
    band = {tuple(v) for v in axis.collections[0].get_paths()[0].vertices}
    assert {(1, 4.0), (1, 8.0), (2, 1.0), (2, 3.0), (3, 0.1)} <= band
    assert axis.get_yscale() == 'log' and axis.get_xlabel() == 'epoch'
    assert axis.get_ylabel() == 'largest gradient'
    assert labels(axis) == ['82.5', '90.0']  # accuracies
    title = figure.legends[0].get_title().get_text()
    assert '1-2 seeds' in title


def test_gradients_have_a_panel_a_keep_rate_and_the_four_kinds():
    (figure,) = draw_gradients(sweep())  # SiT has two of the kinds only
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ['keep rate 100 %', 'keep rate 25 %']
    assert [len(axis.lines) for axis in figure.axes] == [2, 4]
    assert legend_labels(figure) == ['base', '+CLA', '+CLC', 'CLCA']
    assert figure.get_suptitle() == 'leaf40, deit-tiny-p16, 224 px, EViT'


def test_runs_of_other_lengths_and_numbers_that_are_not_finite():
    results = [
        result(seed=1, gradients=(4.0, float('inf'), 1.0)),
        result(seed=2, gradients=(8.0, 2.0)),
        result(seed=3, gradients=(100.0,)),
        result(clca='clca'),
    ]
    results[-1]['gradients']['per_epoch'][1] = None
    (axis,) = only(draw_gradients(results))
    base, clca = axis.lines
    assert base.get_xydata().tolist() == [[1, 6.0], [2, 2.0], [3, 1.0]]
    assert clca.get_xydata().tolist() == [[1, 4.0], [3, 1.0]]


def test_gradients_of_one_kind_are_missing():
    with pytest.raises(MissingResultsError, match='GradientStatsHook'):
        draw_gradients([result(), result(method='SiT', clca='clca')])
    bare = [result(), result(clca='clca')]
    for content in bare:
        content['gradients'] = {}
    with pytest.raises(MissingResultsError, match='two epochs or more'):
        draw_gradients(bare)


def test_many_gradients_are_not_all_drawn():
    results = [
        result(backbone=f'vit-{i}', clca=kind, gradients=(2.0, 1.0))
        for i in range(9)
        for kind in ('base', 'clca')
    ]
    with pytest.warns(UserWarning, match='8 figures of 9'):
        assert len(draw_gradients(results)) == 8


def by_part(**parts):
    """A result with parts of its own."""
    kind = parts.pop('clca', 'base')
    content = result(clca=kind, variant='by-layer', seed=parts.pop('seed', 1))
    content['gradients'].update(parts)
    return content


def test_parts_are_means_over_seeds_a_row_a_part():
    results = [
        by_part(**{'backbone.layers.0': [4.0, 2.0], 'head': [1.0, None]}),
        by_part(
            **{'backbone.layers.0': [2.0, 1.0], 'head': [3.0, None]}, seed=2
        ),
        by_part(**{'backbone.layers.0': [8.0, 1.0]}, clca='clc'),
        *sweep(),
    ]
    (figure,) = draw_parts(results)
    base, clc, _ = figure.axes  # the last is the bar of colours
    assert [base.get_title(), clc.get_title()] == ['base', '+CLC']
    colours = [axis.collections[0].get_array() for axis in (base, clc)]
    assert colours[0].tolist() == [[3.0, 1.5], [2.0, None]]
    assert colours[1].tolist() == [[8.0, 1.0], [None, None]]
    rows = [tick.get_text() for tick in base.get_yticklabels()]
    assert rows == ['layer 0', 'head']
    top, bottom = base.get_ylim()[::-1]
    assert (top, bottom) == (-0.5, 1.5)
    assert figure.get_suptitle().endswith(
        'by-layer, keep rate 25 %, mean of 1-2 seeds'
    )
    limits = {axis.collections[0].get_clim() for axis in (base, clc)}
    assert limits == {(1.0, 8.0)}


def test_parts_without_a_gradient_and_numbers_that_are_not_finite():
    layers = {'backbone.layers.0': [float('inf'), 2.0], 'clr': [None, 0.0]}
    (figure,) = draw_parts([by_part(**layers, head=[4.0, 1.0])])
    panel, _ = figure.axes
    assert panel.collections[0].get_clim() == (1.0, 4.0)
    assert [t.get_text() for t in panel.get_yticklabels()] == [
        'layer 0',
        'head',
    ]
    assert draw_parts([by_part(clr=[None, float('inf')])]) == []


def test_runs_without_parts_of_their_own_have_no_such_figure():
    results = sweep()
    for content in results:
        content['gradients'].update(backbone=[1.0], head=[1.0])
    assert draw_parts(results) == []


def test_parts_are_written_where_there_are_some(tmp_path):
    layers = {f'backbone.layers.{i}': [4.0, 2.0, 0.5] for i in range(12)}
    with pytest.warns(UserWarning):
        paths = write_figures([by_part(**layers)], tmp_path)
    assert [path.name for path in paths] == [
        'gradients_by_part.pdf',
        'gradients_by_part.png',
    ]
    assert b'/Subtype /Image' not in paths[0].read_bytes()
    assert Image.open(paths[1]).width == 2100


@pytest.mark.parametrize('draw', [draw_costs, draw_methods, draw_gradients])
def test_nothing_covers_anything(draw):
    (figure,) = draw(sweep())
    figure.draw_without_rendering()
    (legend,) = figure.legends
    boxes = [axis.get_tightbbox() for axis in figure.axes]
    boxes.append(legend.get_window_extent())
    assert not any(
        a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i]
    )
    for box in boxes:
        assert figure.bbox.padded(1).contains(box.x0, box.y0)
        assert figure.bbox.padded(1).contains(box.x1, box.y1)
    assert figure.get_figwidth() in (3.4, 7.0)


def test_files(tmp_path):
    folder = tmp_path / 'new' / 'figures'
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        paths = write_figures(sweep(), folder)
    names = ('accuracy_gmacs', 'methods', 'gradients')
    assert [path.name for path in paths] == [
        f'{name}.{suffix}' for name in names for suffix in ('pdf', 'png')
    ]
    assert sorted(folder.iterdir()) == sorted(paths)
    for path in paths[1::2]:
        image = Image.open(path)
        assert image.width in (1020, 2100)  # a column, a page at 300 dpi
        assert image.info['dpi'] == pytest.approx((300, 300), rel=1e-3)
        assert np.asarray(image.convert('L')).std() > 10
    for path in paths[::2]:
        content = path.read_bytes()
        assert content.startswith(b'%PDF-')
        assert b'%%EOF' in content[-10:]
        assert b'/Type3' not in content
        assert b'/Subtype /Image' not in content  # vectors only


def test_equal_results_give_equal_files(tmp_path):
    first, second = (
        save(draw_costs(results)[0], tmp_path / name)
        for name, results in dict(a=sweep(), b=sweep()[::-1]).items()
    )
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_figures_without_results_are_left_out(tmp_path):
    with pytest.warns(UserWarning) as record:
        paths = write_figures([result()], tmp_path)
    said = [str(warning.message) for warning in record]
    assert [text.split(',')[0] for text in said] == [
        'no accuracy_gmacs',
        'no methods',
        'no gradients',
    ]
    assert all('results are missing: ' in text for text in said)
    assert {warning.filename for warning in record} == {__file__}
    assert paths == [] == list(tmp_path.iterdir())


def test_further_pages_are_numbered(tmp_path):
    results = [
        result(backbone=f'vit-{i}', clca=kind, gradients=(2.0, 1.0))
        for i in range(2)
        for kind in ('base', 'clca')
    ]
    with pytest.warns(UserWarning, match='no accuracy_gmacs'):
        paths = write_figures(results, tmp_path)
    assert [path.name for path in paths[2:]] == [
        *('gradients.pdf', 'gradients.png'),
        *('gradients-2.pdf', 'gradients-2.png'),
    ]


def test_no_results(tmp_path):
    with pytest.raises(ValueError, match='no results: '):
        write_figures([], tmp_path / 'new')
    assert not (tmp_path / 'new').exists()
