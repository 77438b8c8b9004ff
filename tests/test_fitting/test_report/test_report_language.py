# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The report in other languages than English."""

import re
from dataclasses import replace

import pytest
from report_folder import write_folder

from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.options import FitOptions
from mmclca.fitting.report import write_report
from mmclca.languages import (
    ENGLISH,
    choose_form,
    current_language,
    list_languages,
    text,
    use_language,
)


@pytest.mark.parametrize('language', list_languages())
def test_report_is_written_in_the_language_of_the_record(tmp_path, language):
    folder = FitFolder(write_folder(tmp_path))
    folder.write(replace(folder.read(), language=language))
    page = write_report(tmp_path).read_text(encoding='utf-8')
    with use_language(language):
        headings = [text(f'report.{x}') for x in ('classes', 'cost', 'made')]
    assert f'<html lang="{language}">' in page
    assert all(f'<h2>{heading}</h2>' in page for heading in headings)
    assert current_language() == ENGLISH


def test_chinese_report_has_no_english_sentence(tmp_path):
    folder = FitFolder(write_folder(tmp_path))
    folder.write(replace(folder.read(), language='zh'))
    page = write_report(tmp_path).read_text(encoding='utf-8')
    body = page[page.index('<main>') :]
    words = re.sub(r'<(svg|pre|code).*?</\1>|<[^>]+>', ' ', body, flags=re.S)
    assert not re.findall(r'(?:[a-z]{2,} ){4,}[a-z]+', words)


def test_text_has_the_form_of_its_number():
    assert text('count.photos', number=1) == '1 photo'
    assert text('count.photos', number=2) == '2 photos'
    with use_language('zh'):
        assert choose_form('count.photos', 1) == choose_form('count.photos', 2)


def test_unknown_language_is_refused_with_a_list():
    with pytest.raises(ValueError, match='zh'):
        FitOptions(language='xx')
