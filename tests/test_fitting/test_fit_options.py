# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Options of fit: keywords, command line and record have the same."""

from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest

import mmclca
from mmclca.cli.arguments import Parser
from mmclca.cli.commands.fit import add_arguments
from mmclca.fitting.budget import parse_budget
from mmclca.fitting.options import FitKeywords, FitOptions

NAMES = {item.name: item.default for item in fields(FitOptions)}


def test_keywords_are_the_fields_of_the_options():
    photos, out, *keywords = signature(mmclca.fit).parameters.values()
    assert (photos.name, out.name, out.default) == ('photos', 'out', 'model')
    assert {x.name: x.default for x in keywords} == NAMES
    assert [*FitKeywords.__annotations__] == [*NAMES]


def test_command_line_has_the_fields_of_the_options():
    parser = Parser()
    add_arguments(parser)
    args = vars(parser.parse_args(['photos']))
    parsed = {name: args[name] for name in NAMES}
    assert parsed == NAMES and FitOptions(**parsed) == FitOptions()
    assert args.keys() - NAMES == {'photos', 'out', 'debug'}


@pytest.mark.parametrize(
    'options',
    [
        *(dict(folds=1), dict(folds='5'), dict(folds=True)),
        *(dict(budget=3), dict(budget='3'), dict(runtime='tpu')),
        *(dict(weights=5), dict(weights=[5]), dict(arch=dict(a=1))),
        *(dict(labels=1), dict(coarse=['a']), dict(groups=1), dict(name=1)),
        *(dict(overwrite=1), dict(compare='no'), dict(device=0)),
        *(dict(pixels='all'), dict(class_weights='even')),
        *(
            dict(fine_tune=True, probe_only=True),
            dict(arch=['a', 'b'], weights='c'),
        ),
    ],
    ids=str,
)
def test_wrong_option_is_refused_by_name(options):
    with pytest.raises(mmclca.Error, match=next(iter(options))):
        FitOptions(**options)


def test_options_get_the_types_of_the_record(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    options = FitOptions(
        weights=[Path('a.pth'), 'timm://b'], labels=Path('d.csv')
    )
    assert options.weights == ['a.pth', 'timm://b']
    assert options.labels == str(tmp_path / 'd.csv')
    assert FitOptions(weights=[Path('a.pth')]).weights == 'a.pth'
    assert FitOptions(weights='', arch=[]) == FitOptions()
    assert options.recorded['weights'] == options.weights
    assert options.recorded.keys().isdisjoint({'device', 'overwrite'})


def test_each_weights_get_their_network_or_none():
    options = FitOptions(weights=['a', 'b'], arch=['resnet18', 'resnet34'])
    assert options.pair_weights() == [('a', 'resnet18'), ('b', 'resnet34')]
    options = FitOptions(weights=['a', 'b'])
    assert options.pair_weights() == [('a', None), ('b', None)]


def test_budget_is_an_amount_with_its_unit():
    assert parse_budget('.5 gmacs') == (0.5, 'GMACs')
    assert parse_budget('20ms') == (20, 'ms')


@pytest.mark.parametrize('text', ['1', '-1ms', '0 GMACs', '2s', 'most', ''])
def test_parse_budget_refuses_other_texts(text):
    with pytest.raises(mmclca.Error, match='0.5GMACs'):
        parse_budget(text)
