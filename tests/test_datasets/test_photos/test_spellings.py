# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest

from mmclca.datasets.photos.spellings import normalize_name, visual_key


@pytest.mark.parametrize(
    'name',
    ['Mo\u0308hre', ' Möhre', 'Möhre\xa0', '\ufeffMöhre', 'Mö\xadh\u200bre'],
)
def test_normalize_name_normalizes_invisible_differences(name):
    assert normalize_name(name) == 'Möhre'


def test_normalize_name_keeps_joiners_and_case():
    for name in ('می\u200cخک', 'Rose', 'red-oak', '１'):
        assert normalize_name(name) == name


@pytest.mark.parametrize(
    'names',
    [
        ('Red oak', 'red  Oak', 'RedOak', 'red_oak', 'red-oak', 'Red Oak.'),
        ('ＲＯＳＥ', 'rose', 'rоsе'),  # the last one with Cyrillic letters
        ('1', '01', '1.0', '1,00', '１'),
        ('2024-01-05', '05/01/2024', '5.1.2024'),
        ("O'Hara", 'O’Hara'),
    ],
)
def test_visual_key_is_equal_if_names_look_the_same(names):
    assert len({*map(visual_key, names)}) == 1


def test_visual_key_differs_if_names_differ():
    names = ('rose', 'roses', '1', '10', '1-2', '12', 'A+', 'A-', '1.5', '5.1')
    names += ('2024-1', '1-2024', 'plot 1-2-2024', 'plot 2-1-2024')
    assert len({*map(visual_key, names)}) == len(names)
