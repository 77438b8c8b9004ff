# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest

from mmclca.datasets.photos import Problem
from mmclca.languages import Note, use_language


def test_problem_names_the_first_three_cases():
    cases = tuple((f'{x}.jpg', 'empty file') for x in 'abcde')
    problem = Problem('unreadable', cases)
    assert problem.label == 'Skipped'
    assert problem.message == (
        '5 unreadable (a.jpg: empty file; b.jpg: empty file; '
        'c.jpg: empty file and 2 more)'
    )
    assert problem.describe() == f'Skipped: {problem.message}'


def test_problem_has_a_singular_if_there_is_one_case():
    problem = Problem('untrained_classes', (('ash', '3 in val or test'),))
    assert problem.message == (
        '1 class without training photos (ash, 3 in val or test)'
    )


def test_problem_is_written_in_the_language_of_its_reader():
    note = Note('photos.ending', dict(ending='.txt'))
    problem = Problem('unused', (('a.txt',), ('b.txt',)), note=note)
    assert problem.message == '2 files ending in .txt (a.txt; b.txt)'
    with use_language('zh'):
        assert '扩展名为 .txt' in problem.message
    with pytest.raises(KeyError, match='gone'):
        str(Note('photos.gone'))


def test_problem_without_cases_is_its_reason():
    assumption = Problem('assumption', reason='column "date" is not used')
    assert assumption.describe() == 'Warning: column "date" is not used'
    assert Problem('line', reason='Skipped: 1 file').describe() == (
        'Skipped: 1 file'
    )
