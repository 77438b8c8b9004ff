# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
import shutil

import cv2
import numpy as np
import pytest
from PIL import Image

from mmclca.datasets.photos import check_photos, read_photos


def describe(checked):
    """Describe the problems, one line each."""
    return [problem.describe() for problem in checked.list_problems()]


@pytest.fixture
def check(tmp_path):
    """Function to check the photos in the test's folder."""

    def check(**options):
        return check_photos(read_photos(tmp_path, **options))

    return check


def test_check_skips_unreadable_files(check, paint, tmp_path):
    names = ('a/1.png', 'a/2.jpg', 'b/3.png', 'b/4.png')
    for number, name in enumerate(names):
        paint(name, number)
    (tmp_path / 'a/0.png').write_bytes(b'')
    (tmp_path / 'b/5.heic').write_bytes(b'\0\0\0 ftypheic\0\0\0\0mif1')
    cut = (tmp_path / 'b/3.png').read_bytes()
    (tmp_path / 'b/6.png').write_bytes(cut[:-400])
    damaged = bytearray(cut)
    damaged[len(cut) // 2] ^= 0xFF  # first and last bytes are intact
    (tmp_path / 'b/7.png').write_bytes(damaged)
    heights = Image.fromarray(np.zeros((9, 9), np.float32))
    heights.save(tmp_path / 'b/8.tif')
    checked = check()
    terms = {
        'a/0.png': 'empty file',
        'b/5.heic': 'pip install "mmclca[heic]"',
        'b/6.png': 'OSError',
        'b/7.png': '',
        'b/8.tif': '32-bit',
    }
    reasons = dict(zip(terms, checked.unreadable.values(), strict=True))
    assert list(checked.unreadable) == [str(tmp_path / name) for name in terms]
    assert all(term in reasons[name] for name, term in terms.items())
    assert len(checked.photos) == 4
    (line,) = describe(checked)
    assert '5 unreadable (a/0.png: empty file; b/5.heic' in line
    assert line.endswith(' and 2 more)')


@pytest.mark.parametrize('lossless', [True, False])
def test_check_skips_truncated_webp_photos(check, paint, lossless):
    turned = Image.Exif()
    turned[0x0112] = 6
    cut = []
    for number, lost in enumerate((1, 20, 200)):
        options = dict(lossless=lossless, exif=turned) if number else {}
        path = paint(f'a/{number}.webp', number, size=(160, 120), **options)
        path.write_bytes(path.read_bytes()[:-lost])
        cut.append(str(path))
    paint('a/3.webp', 3, exif=turned)
    paint('b/4.webp', 4, lossless=lossless)
    checked = check()
    assert [*checked.unreadable] == cut and len(checked.photos) == 2


def test_check_skips_file_if_bytes_repeat(check, paint, tmp_path):
    for number in range(4):
        paint(f'{number % 2}/{number}.jpg', number)
    assert describe(check()) == []
    shutil.copy(tmp_path / '0/0.jpg', tmp_path / '0/copy.jpg')
    checked = check()
    pair = str(tmp_path / '0/copy.jpg'), str(tmp_path / '0/0.jpg')
    assert checked.duplicates == [pair] and len(checked.photos) == 4
    (line,) = describe(checked)
    assert '(0/copy.jpg = 0/0.jpg)' in line


@pytest.mark.parametrize('first', ['.png', '.jpg'])
def test_check_skips_file_if_pixels_repeat_in_another_format(
    check, paint, tmp_path, first
):
    path = paint(f'a/0{first}', 0, size=(100, 75))
    others = [tmp_path / f'a/{x}' for x in ('1.bmp', '2.tif', '3.webp')]
    for other in others:
        with Image.open(path) as image:
            image.save(other, lossless=True)
    for number in (2, 3):
        paint(f'b/{number}.png', number, size=(100, 75))
    pairs = [(str(other), str(path)) for other in others]
    assert check().duplicates == pairs


def test_check_compares_pixels_but_not_exif_data(check, paint):
    exif = Image.Exif()
    exif[0x010F] = 'a camera'
    first, other = paint('a/0.png', 0, exif=exif), paint('a/1.png', 0)
    paint('b/2.jpg', 2)
    with Image.open(first) as image:
        image.putpixel((3, 3), (0, 0, 0))
        image.save(first.with_name('3.png'))
    assert first.read_bytes() != other.read_bytes()
    assert check().duplicates == [(str(other), str(first))]


def test_check_compares_16_bit_scans(check, tmp_path):
    noise = np.random.default_rng(0).integers(9999, 65535, (5, 30, 40))
    for number, scan in enumerate(noise.astype(np.uint16)):
        path = tmp_path / f'{number % 2}/{number}.tif'
        path.parent.mkdir(exist_ok=True)
        cv2.imwrite(str(path), scan)
    cv2.imwrite(str(tmp_path / '0/copy.png'), scan)
    copy = str(tmp_path / '0/copy.png'), str(tmp_path / '0/4.tif')
    assert check().duplicates == [copy]


def test_check_skips_all_copies_if_classes_differ(check, paint, tmp_path):
    for name, number in (('a/0', 0), ('a/1', 1), ('b/2', 2), ('b/3', 0)):
        paint(f'{name}.png', number)
    shutil.copy(tmp_path / 'a/0.png', tmp_path / 'a/4.png')
    checked = check()
    names = ('a/0.png', 'a/4.png', 'b/3.png')
    assert checked.conflicting_labels == [
        tuple(str(tmp_path / n) for n in names)
    ]
    used = checked.photos
    assert used.paths == [str(tmp_path / x) for x in ('a/1.png', 'b/2.png')]
    assert used.names == ['a', 'b']
    assert checked.duplicates == [] and checked.single_photo_classes == [
        'a',
        'b',
    ]
    conflict, single = describe(checked)
    assert '(a/0.png = a/4.png = b/3.png)' in conflict
    assert '(a; b)' in single


def test_check_keeps_the_copy_in_test_if_splits_differ(check, paint, tmp_path):
    for split, first in dict(train=0, val=10, test=20).items():
        for number in range(4):
            paint(f'{split}/{number % 2}/{number}.png', first + number)
    for name in ('train/0/a.png', 'val/0/b.png', 'test/0/c.png'):
        shutil.copy(tmp_path / 'train/0/0.png', tmp_path / name)
    checked = check()
    kept = str(tmp_path / 'test/0/c.png')
    assert checked.duplicates == [] and {
        k for _, k in checked.cross_split_duplicates
    } == {kept}
    lost = ('train/0/0.png', 'train/0/a.png', 'val/0/b.png')
    assert sorted(p for p, _ in checked.cross_split_duplicates) == [
        str(tmp_path / name) for name in lost
    ]
    assert '3 also in val or test' in describe(checked)[0]
    assert checked.photos.splits.count('test') == 5


def test_check_skips_class_if_it_has_no_training_photos(
    check, paint, tmp_path
):
    for name, number in dict(rose=0, tulip=1, fern=2).items():
        paint(f'train/{name}/0.png', number)
        paint(f'test/{name}/1.png', number + 10)
    (tmp_path / 'train/rose/0.png').write_bytes(b'no image')
    checked = check()
    assert (
        checked.photos.classes
        == checked.single_photo_classes
        == ['fern', 'tulip']
    )
    assert checked.photos.labels == [0, 1, 0, 1]
    assert checked.untrained_classes == dict(rose=1)
    assert '(rose, 1 in val' in describe(checked)[1]


def test_check_reports_groups_in_train_and_test(check, paint):
    names = ('train/a/p1', 'train/b/p2', 'test/a/p1', 'test/b/p3', 'val/b/p2')
    for number, name in enumerate(names):
        paint(f'{name}.png', number)
    checked = check(groups='p[0-9]')
    assert checked.cross_split_groups == ['p1', 'p2']
    assert '(p1; p2)' in describe(checked)[0]
    assert len(checked.photos) == 5


def test_check_reports_class_names_if_they_look_the_same(check, paint):
    for number, name in enumerate(['Red oak', 'red  Oak', 'ash', 'RedOak']):
        paint(f'{name}/0.png', number)
        paint(f'{name}/1.png', number + 10)
    (line,) = describe(check())
    assert 'Red oak = RedOak = red Oak' in line


def test_check_skips_path_if_it_cannot_be_listed(check, paint, tmp_path):
    for number, name in enumerate(('a/0', 'a/1', 'b/2', 'b/3', 'b/4\n5')):
        paint(f'{name}.png', number)
    umlaut = os.fsdecode(os.fsencode(tmp_path) + b'/b/5\xe4.png')
    os.rename(paint('b/5.png', 5), umlaut)
    checked = check()
    line_break, encoding = checked.unreadable.values()
    assert 'line break' in line_break and 'UTF-8' in encoding
    assert 'b/5\ufffd.png: file name' in describe(checked)[0]
    describe(checked)[0].encode()


def test_check_refuses_photos_if_fewer_than_two_classes_remain(
    check, paint, tmp_path
):
    paint('rose/0.png', 0)
    (tmp_path / 'tulip').mkdir()
    (tmp_path / 'tulip/1.png').write_bytes(b'no image')
    with pytest.raises(ValueError, match='found 1 of 2') as error:
        check()
    assert '1 unreadable (tulip/1.png' in str(error.value)


def test_check_reports_unused_files_by_kind(check, paint, tmp_path):
    for number, name in enumerate(('rose/0', 'rose/1', 'tulip/2')):
        paint(f'{name}.png', number)
        paint(f'rose/@eaDir/{number}.png/thumbnail.png', number)
    for number in range(5):
        (tmp_path / f'tulip/{number}.cr2').touch()
    (tmp_path / 'loose.jpg').touch()
    loose, raw, system, _ = describe(check())
    assert loose == 'Skipped: 1 file not in a class folder (loose.jpg)'
    assert '5 files ending in .cr2' in raw and raw.endswith(' and 2 more)')
    assert 'Skipped: 1 system' in system and '(rose/@eaDir' in system


def test_check_accepts_uneven_and_many_classes(check, paint):
    counts = dict(ash=30, oak=3, yew=1) | {f'z{i:02d}': 1 for i in range(60)}
    for i, (name, count) in enumerate(counts.items()):
        for number in range(count):
            paint(f'{name}/{number}.png', 100 * i + number, size=(8, 8))
    checked = check(groups='^ash|[0-9]+')
    assert checked.photos.counts() == counts
    assert checked.single_photo_classes == [*counts][2:]
    (line,) = describe(checked)
    assert '(yew; z00; z01 and 58 more)' in line
    assert checked.photos.groups[29:35] == ['ash', *'0120', '00']
