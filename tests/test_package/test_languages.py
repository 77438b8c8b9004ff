# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Texts of the user interfaces in all languages."""

import re

import pytest
from tiny_run import ROOT

from mmclca.languages import ENGLISH, read_texts

TABLES = read_texts('')
VALUE = re.compile(r'\{\w+\}')
WEB = ROOT / 'mmclca/deployment/web'
# prefixes of keys named by Python and the template of the report
PARTS = {key.partition('.')[0] for key in TABLES[ENGLISH]} - {'app'}
KEY = re.compile(rf"['\"]((?:{'|'.join(PARTS)})\.[a-z_0-9.]+)['\"]")
CALL = re.compile(rf'\b(?:label|t|text|Note|\w*Error)\(\s*{KEY.pattern}')
STEM = re.compile(rf"f'((?:{'|'.join(PARTS)})\.[a-z_.]*)\{{")


@pytest.mark.parametrize('language', TABLES)
def test_table_has_each_text_with_its_values(language):
    texts, expected = TABLES[language], TABLES[ENGLISH]
    assert [*texts] == [*expected]
    for key, text in texts.items():
        forms, other = list_forms(text), list_forms(expected[key])
        assert all(form.strip() for form in forms)
        assert {*VALUE.findall(forms[-1])} == {*VALUE.findall(other[-1])}


def list_forms(text):
    """List the forms of a text, the one for most numbers last."""
    return [text] if isinstance(text, str) else [*text.values()]


def test_tables_have_english_and_chinese():
    assert {'en', 'zh'} <= {*TABLES}


def test_read_texts_selects_by_prefix():
    (first, *_) = TABLES['zh']
    assert read_texts(first) == {
        name: {first: texts[first]} for name, texts in TABLES.items()
    }


def test_app_names_only_texts_of_the_table_and_all_of_them():
    keys = {key for key in TABLES[ENGLISH] if key.startswith('app.')}
    sources = [x for x in WEB.glob('*.*') if x.suffix in ('.js', '.html')]
    sources.append(WEB.parent / 'web_single_file.py')
    content = '\n'.join(x.read_text() for x in sources)
    refused = re.findall(r"refuse\('(\w+)'", content)
    named = {
        *re.findall(r"['\"](app\.[\w.]+)['\"]", content),
        *(f'app.photo.{kind}' for kind in refused),
    }
    # such as `app.units.${unit}`
    starts = tuple(re.findall(r'`(app\.[\w.]+\.)\$', content))
    named -= {'app.js', 'app.json'}  # files
    assert named <= keys
    assert all(any(key.startswith(x) for key in keys) for x in starts)
    assert {x for x in keys - named if not x.startswith(starts)} == set()


def test_package_names_only_texts_of_the_table_and_all_of_them():
    content = '\n'.join(
        path.read_text(encoding='utf-8')
        for path in (ROOT / 'mmclca').rglob('*.*')
        if path.suffix in ('.py', '.html')
    )
    keys = {x for x in TABLES[ENGLISH] if x.partition('.')[0] in PARTS}
    starts = tuple(STEM.findall(content))
    unnamed = keys - {*KEY.findall(content)}
    assert {*CALL.findall(content)} <= keys
    assert {key for key in unnamed if not key.startswith(starts)} == set()
    assert all(any(key.startswith(x) for key in keys) for x in starts)
