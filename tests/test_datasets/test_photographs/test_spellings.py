# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest

from mmclca.datasets.photographs.spellings import clean, look


@pytest.mark.parametrize(
    'name',
    ['Mo\u0308hre', ' Möhre', 'Möhre\xa0', '\ufeffMöhre', 'Mö\xadh\u200bre'],
)
def test_clean_normalizes_invisible_differences(name):
    assert clean(name) == 'Möhre'


def test_clean_keeps_joiners_and_case():
    for name in ('می\u200cخک', 'Rose', 'red-oak', '１'):
        assert clean(name) == name


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
def test_look_is_equal_if_names_look_the_same(names):
    assert len({*map(look, names)}) == 1


def test_look_differs_if_names_differ():
    names = ('rose', 'roses', '1', '10', '1-2', '12', 'A+', 'A-', '1.5', '5.1')
    names += ('2024-1', '1-2024', 'plot 1-2-2024', 'plot 2-1-2024')
    assert len({*map(look, names)}) == len(names)
