# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the page is made of."""

import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tiny_model import write_tiny

from mmclca.fitting import report
from mmclca.fitting.pictures import Pictures
from mmclca.fitting.report import chart, expected, what_is_kept

NAMES = ('photographs', 'accuracy', 'low', 'high')


def points(*rows):
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def law(*numbers):
    """Points whose error falls with the root of the photographs."""
    shares = [1 - 0.4 / np.sqrt(number) for number in numbers]
    rows = zip(numbers, shares, strict=True)
    return points(*((n, x, x - 0.1, x + 0.01) for n, x in rows))


@pytest.mark.parametrize('numbers', [(1, 2), (1, 2, 3, 5)])
def test_estimate_follows_a_power_law_to_twice_the_photographs(numbers):
    found = expected(law(*numbers))
    assert found['photographs'] == 2 * numbers[-1]
    (true,) = law(found['photographs'])
    assert found['accuracy'] == pytest.approx(true['accuracy'])
    assert found['low'] < found['accuracy'] < found['high'] <= 1


def test_estimate_needs_two_points_and_promises_no_loss():
    assert expected(law(1)) is None
    found = expected(points((1, 0.9, 0.8, 0.95), (2, 0.8, 0.7, 0.9)))
    assert 0.8 <= found['accuracy'] < 0.9 and found['low'] >= 0.7
    found = expected(points((1, 1.0, 0.9, 1.0), (2, 1.0, 0.9, 1.0)))
    assert 0.9 <= found['low'] <= found['high'] <= 1
    # half of the errors go at most
    found = expected(points((1, 0.6, 0.5, 0.7), (2, 0.96, 0.9, 0.98)))
    assert 0.96 <= found['accuracy'] <= 0.98


def test_chart_of_a_curve():
    curve = law(1, 2, 20, 22)
    drawn = chart(curve, expected(curve))
    texts = re.findall(r'<text[^>]*>([^<]*)<', drawn)
    assert {'1', '2', '5', '10', '20', '100\N{NO-BREAK SPACE}%'} <= {*texts}
    assert 'var(--bar)' in drawn and '#0072b2' not in drawn


SHARES = '0_% under_1_% 50_% over_99_% 100_%'
FIGURES = [
    (report.about, (0, 0.004, 0.5, 0.996, 1), SHARES),
    (report.of_hundred, (0, 0.001, 0.5, 0.999, 1), '0 1 50 99 100'),
    (report.digits, (0.4821, 17.94, 1254), '0.482 17.9 1254'),
    (report.duration, (11.3, 171), '11_s 2_min_51_s'),
]


@pytest.mark.parametrize('write, values, words', FIGURES)
def test_figures_in_words(write, values, words):
    written = (re.sub(r'\s', '_', str(write(value))) for value in values)
    assert ' '.join(written) == words


@pytest.fixture(scope='module')
def tested(tmp_path_factory):
    """Two leaves, one a class, and one that is taken for another."""
    path = str(tmp_path_factory.mktemp('leaf') / 'leaf.png')
    Image.new('RGB', (48, 64), 'green').save(path)
    names = [('ash', 'ash'), ('elm', 'elm'), ('oak', 'elm')]
    return [{'path': path, 'class': x, 'predicted': y} for x, y in names]


def pictures(folder, rows):
    digests = {row['path']: 'a' for row in rows}
    return Pictures(folder / 'pictures', digests, opened=digests)


PLAIN = dict(reducer=None, reduce_at=())


def kept_by(folder, tested, name, **options):
    folder = folder / f'of {name}'
    folder.mkdir()
    reducer = dict(type=f'mmclca.{name}', keep_rate=0.5)
    write_tiny(folder, **dict(reducer=reducer, cache=None) | options)
    return what_is_kept(folder / 'tiny.pth', tested, pictures(folder, tested))


def test_what_the_model_keeps(tmp_path, tested):
    given = tested, pictures(tmp_path, tested)
    assert what_is_kept(tmp_path / 'tiny.pth', *given) is None
    assert kept_by(tmp_path, tested, '', **PLAIN) is None  # it keeps all
    found = kept_by(tmp_path, tested, 'EViT', reduce_at=(0, 1))
    assert [row[0][0] for row in found['rows']] == ['ash', 'elm']
    for row in found['rows']:
        texts = [text.split(':')[0] for text, _ in row]
        assert texts[1:] == ['after layer 0', 'after layer 1']
        assert row[1][0].endswith('50\N{NO-BREAK SPACE}% kept')
        assert all((p['width'], p['height']) == (32, 32) for _, p in row)
    assert [look.text[:5] for look in found['legend']] == ['kept:', 'fused']
    found = kept_by(tmp_path, tested, 'PatchMerger', reduce_at=(1,))
    (look,) = found['legend']
    assert look.text.startswith('mixed')
    assert look.fill.startswith('linear-gradient(90deg, #000004')


def test_thumbnail_is_a_small_copy_in_the_folder(tmp_path):
    path = str(tmp_path / 'leaf.tif')
    Image.new('CMYK', (400, 200), 200).save(path)
    reader = Pictures(tmp_path / 'model/pictures.safetensors', {path: 'a'})
    assert reader.thumbnail(path, 'a leaf') == dict(src='', alt='a leaf')
    writer = replace(reader, opened=[path])
    found = writer.thumbnail(path, 'a leaf')
    writer.save()
    assert found['src'] and found['alt'] == 'a leaf'
    assert (found['width'], found['height']) == (160, 80)
    assert replace(reader).thumbnail(path, 'a leaf') == found
