# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Results are written whole or not at all, and bad ones are kept."""

import json
from multiprocessing import get_context

import pytest
from sweep_results import result_of

from mmclca.sweep.results import read_result, read_results, set_aside
from mmclca.utils.atomic_write import replace_text


def test_round_trip(tmp_path):
    path = tmp_path / 'cell.json'
    replace_text(path, json.dumps(result_of()))
    assert read_result(path) == result_of()
    assert read_result(tmp_path / 'none.json') is None
    assert [file.name for file in tmp_path.iterdir()] == ['cell.json']


WHOLE = json.dumps(result_of())


@pytest.mark.parametrize(
    'text, said',
    [
        (WHOLE[:200], 'is no result'),
        ('', 'Expecting value'),
        ('[1]', 'no JSON object'),
        (json.dumps(result_of(accuracy=None)), 'without accuracy'),
        (json.dumps({'cell': {}}), 'without config_hash, accuracy'),
        ('\x00' * 50, 'is no result'),
        ('\xff\xfe\x00{', 'is no result'),
    ],
)
def test_what_is_no_result_counts_as_not_run(tmp_path, text, said):
    path = tmp_path / 'cell.json'
    path.write_text(text, 'latin1')
    with pytest.warns(UserWarning, match='counts as not run') as warned:
        assert read_result(path) is None
    assert said in str(warned[0].message)
    assert path.read_text('latin1') == text


def test_setting_aside_overwrites_nothing(tmp_path):
    path = tmp_path / 'cell.json'
    for text in ('first', 'second'):
        path.write_text(text)
        set_aside(path)
        assert not path.exists()
    assert (tmp_path / 'cell.json.bad-1').read_text() == 'first'
    assert (tmp_path / 'cell.json.bad-2').read_text() == 'second'
    assert len(list(tmp_path.iterdir())) == 2


def test_results_of_a_folder(tmp_path):
    replace_text(tmp_path / 'b.json', json.dumps(result_of(accuracy=2.0)))
    replace_text(tmp_path / 'a.json', json.dumps(result_of(accuracy=1.0)))
    (tmp_path / 'c.json').write_text('{')
    (tmp_path / '.d.0123.json').write_text('{')  # of a killed writer
    with pytest.warns(UserWarning, match=r'c\.json is no result') as warned:
        found = read_results(tmp_path)
    assert len(warned) == 1
    assert [result['accuracy'] for result in found] == [1.0, 2.0]
    with pytest.raises(FileNotFoundError, match='no folder of results'):
        read_results(tmp_path / 'none')


def write_often(path, letter):
    for _ in range(50):
        replace_text(path, 10000 * letter)


def test_no_reader_finds_a_mixture_of_many_writers(tmp_path):
    path, context = tmp_path / 'file', get_context('fork')
    writers = [
        context.Process(target=write_often, args=(path, letter))
        for letter in 'abcd'
    ]
    for writer in writers:
        writer.start()
    texts = []
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            texts.append(path.read_text())
    assert all(len(t) == 10000 and len(set(t)) == 1 for t in texts)
    assert len({text[0] for text in texts}) > 1
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    assert [file.name for file in tmp_path.iterdir()] == ['file']
