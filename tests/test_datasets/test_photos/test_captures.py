# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Days and cameras in EXIF data and names, and classes that share them."""

from datetime import date, timedelta
from io import BytesIO

import pytest
from PIL import Image

from mmclca.datasets.photos import LabeledImages, check_photos, read_photos
from mmclca.datasets.photos.capture_dates import (
    make_date,
    parse_exif_date,
    parse_name,
    parse_names,
)
from mmclca.datasets.photos.capture_names import add_names
from mmclca.datasets.photos.captures import Capture, read_exif
from mmclca.datasets.photos.spreads import compute_spread

JULY = date(2023, 7, 14)


@pytest.mark.parametrize(
    'name',
    [
        'IMG_20230714_101112.jpg',
        'IMG_20230714_101112_Custom.jpg',
        '20230714_101112(0).jpg',
        '20230714101112.jpg',
        'PXL_20230714_101112345.MP.jpg',
        'PXL_20230714_101112345~2.jpg',
        'IMG-20230714-WA0007.jpg',
        'WhatsApp Image 2023-07-14 at 10.11.12.jpeg',
        'Screenshot_2023-07-14-10-11-12.png',
        '2023-07-14',
        '2023_07_14 plot 3',
        '14.07.2023',
        'leaf 14-7-2023 (2).jpg',
        'FB_IMG_1689329472123.jpg',
        '1689329472.jpg',
    ],
)
def test_day_is_read_from_names_by_cameras_and_people(name):
    assert parse_name(name).day_first == JULY


@pytest.mark.parametrize(
    'name',
    [
        'IMG_0412.jpg',
        'alternaria__113.jpg',
        '19700101_000000.jpg',  # a camera without a clock
        '20231345_101112.jpg',
        '2023-02-30.jpg',
        f'{date.today() + timedelta(days=9):%Y%m%d}_101112.jpg',
        'BWP2013PIC16950033.jpg',
        '120230714.jpg',
        '9999999999999.jpg',
        'rose 2023.jpg',
    ],
)
def test_impossible_days_and_other_numbers_are_no_days(name):
    assert parse_name(name) is None


def test_order_of_day_and_month_follows_the_unambiguous_names():
    dashed = [('7-8-2023.jpg',), ('7-25-2023.jpg',)]
    assert parse_names(dashed)[0] == date(2023, 7, 8)
    assert parse_names(dashed[:1])[0] == date(2023, 8, 7)
    dotted = [('7.8.2023.jpg',), ('7-25-2023.jpg',)]
    assert parse_names(dotted)[0] == date(2023, 8, 7)


def test_file_name_counts_before_the_nearest_folder():
    paths = [
        ('2021-01-01', '2022-02-02', 'a.jpg'),
        ('2021-01-01', '20230714_101112.jpg'),
    ]
    assert parse_names(paths) == [date(2022, 2, 2), JULY]


def open_photo(**tags):
    exif = Image.Exif()
    for tag in (0x010F, 0x0110):
        if tag in (numbers := {int(x[1:], 16): y for x, y in tags.items()}):
            exif[tag] = numbers[tag]
    exif[0x8769] = {0x9003: tags.get('x9003', '')}
    file = BytesIO()
    Image.new('RGB', (8, 8)).save(file, 'JPEG', exif=exif)
    return Image.open(file)


def test_exif_gives_day_and_camera():
    photo = open_photo(
        x9003='2023:07:14 10:11:12', x010f='Canon', x0110='Canon EOS\0'
    )
    assert read_exif(photo) == Capture('2023-07-14', 'Canon EOS')
    photo = open_photo(x9003='0000:00:00 00:00:00', x0110='Phone')
    assert read_exif(photo) == Capture('', 'Phone')
    assert read_exif(Image.new('RGB', (8, 8))) == Capture()
    assert parse_exif_date(b'damaged') is None
    assert make_date(1970, 1, 1) is None


def test_classes_with_days_of_their_own_coincide():
    days = ['1', '1', '2', '3', '3', '4']
    spread = compute_spread('day', days, ['a', 'a', 'b', 'c', 'c', 'c'])
    assert spread.single == dict(a='1', b='2')
    assert spread.coinciding == ['a', 'b']
    assert (spread.number, spread.classes_per_value) == (4, (1, 1))
    assert not spread.is_across


def test_classes_of_one_common_day_do_not_coincide():
    spread = compute_spread('day', ['1', '1', '1', '2'], ['a', 'a', 'b', 'b'])
    assert spread.single == dict(a='1')
    assert spread.coinciding == []


def write_photos(folder, names):
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        color = (30 * number, 255 - 20 * number, number)
        Image.new('RGB', (16, 16), color).save(path)
    return folder


def test_photos_without_a_day_have_no_spread(tmp_path):
    names = ['ash/1.png', 'ash/2.png', 'elm/1.png', 'elm/2.png']
    checked = check_photos(read_photos(write_photos(tmp_path, names)))
    assert checked.spreads == []


def test_days_and_shared_folders_are_compared_with_classes(tmp_path):
    names = [
        *('ash/north/20230714_1.png', 'ash/north/20230714_2.png'),
        *('elm/north/20230715_1.png', 'elm/south/20230716_2.png'),
    ]
    checked = check_photos(read_photos(write_photos(tmp_path, names)))
    day, folder = checked.spreads
    assert (day.kind, day.single) == ('day', dict(ash='2023-07-14'))
    assert (folder.kind, folder.single) == ('folder', dict(ash='north'))
    assert (day.coinciding, folder.coinciding) == (['ash'], [])


def test_folders_are_those_below_the_source_or_the_class(tmp_path):
    (tmp_path / 'table.csv').touch()
    for source in ('photos', 'gone.txt', 'table.csv'):
        folder = tmp_path / 'photos' if source == 'photos' else tmp_path
        images = LabeledImages.from_names(
            [
                str(folder / 'ash/north/1.png'),
                '/new/ash/2.png',
                '/new/ash/south/3.png',
                '/new/leaves/south/4.png',
            ],
            ['ash'] * 4,
            str(tmp_path / source),
        )
        captures = add_names(images, {}).values()
        assert [x.folder for x in captures] == ['north', '', 'south', '']


@pytest.mark.parametrize('place, number', [('plant', 4), ('site', 2)])
def test_plants_numbered_within_each_class_are_other_plants(
    tmp_path, place, number
):
    names = [f'{x}/{place}{i}/1.png' for x in ('ash', 'elm') for i in (1, 2)]
    write_photos(tmp_path, names)
    photos = read_photos(tmp_path, groups=rf'{place}\d+')
    assert len({*photos.groups}) == number
    assert len(photos.notes) == (place == 'plant')
