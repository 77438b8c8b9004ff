# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Records of fit.json: conversion from JSON, and descriptions."""

import json
from dataclasses import dataclass, field
from math import nan
from typing import Literal

import pytest
import report_folder

import mmclca
from mmclca.checkpoints.gate.json_parsing import parse_record
from mmclca.fitting.record import FitRecord
from mmclca.fitting.record_parts import Model


@dataclass(frozen=True)
class Leaf:
    name: str
    size: float | None = None


@dataclass(frozen=True)
class Tree:
    leaves: list[Leaf]
    pairs: list[tuple[str, int]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    weights: str | list[str] | None = None
    state: Literal['green', 'brown'] = 'green'


def test_json_is_converted_to_nested_records():
    content = dict(
        leaves=[dict(name='a', size=2)], pairs=[['b', 1]], weights=['c']
    )
    assert parse_record(Tree, content) == Tree(
        [Leaf('a', 2)], [('b', 1)], weights=['c']
    )


@pytest.mark.parametrize(
    'change, key',
    [
        (dict(leaves=dict(name='a')), 'leaves'),
        (dict(leaves=[dict(size=1)]), r'leaves\[0\].name is missing'),
        (dict(leaves=[dict(name='a', size='1')]), r'leaves\[0\].size'),
        (dict(leaves=[dict(name='a', size=True)]), r'leaves\[0\].size'),
        (dict(pairs=[['b']]), r'pairs\[0\]'),
        (dict(leaves=[dict(name='a', size=10**400)]), r'leaves\[0\].size'),
        (dict(leaves=[dict(name='a', size=nan)]), r'leaves\[0\].size'),
        (dict(counts=dict(ash=1.5)), 'counts.ash'),
        (dict(weights=[1]), r'weights\[0\]'),
        (dict(state='blue'), 'state'),
        (dict(color='blue'), 'color is not a key'),
    ],
)
def test_wrong_json_is_refused_by_its_key(change, key):
    with pytest.raises(mmclca.Error, match=key):
        parse_record(Tree, dict(leaves=[]) | change)


def test_record_is_the_same_after_writing_and_reading():
    content = report_folder.facts()
    content['call'] = dict(photos='photos', weights=['a.pth', 'b.pth'])
    content['near_duplicates'] = [['a.jpg', 'b.jpg']]
    record = FitRecord.from_json(content)
    written = json.loads(json.dumps(record.to_json()))
    assert FitRecord.from_json(written) == record
    assert {name: written[name] for name in ('classes', 'counts')} == {
        name: content[name] for name in ('classes', 'counts')
    }
    assert record.photos.near_duplicates == [('a.jpg', 'b.jpg')]


def test_model_is_described_with_its_omitted_layers():
    model = Model('ATC', 0.5, 160, 'cls_average_std', (0, 1, 2), 4)
    description = 'ATC, keep rate 0.5, 160 px, first 3 of 4 layers'
    assert model.describe().lines == (description,)
    assert model.variant.layers == (0, 1, 2)


@pytest.mark.parametrize(
    'part, change',
    [
        ('cost', dict(params=0)),
        ('cost', dict(ms=None)),
        ('cost', dict(ms_full=-1.0)),
        ('considered', dict(gmacs=0.0)),
        ('considered', dict(gmacs=None, ms=-1.0)),
    ],
)
def test_record_is_refused_if_a_cost_is_not_positive(part, change):
    content = report_folder.facts()
    compared = dict(source='a.pth', model='ATC', gmacs=0.5, accuracy=0.9)
    content['considered'] = [compared]
    FitRecord.from_json(content)
    changed = compared if part == 'considered' else content[part]
    changed |= change
    with pytest.raises(mmclca.Error, match=f'{part} has'):
        FitRecord.from_json(content)
