# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run all commands and Python blocks on the documentation pages."""

import functools
import re
import shutil
import sys
from glob import glob
from string import Template

import pytest
import torch
from doc_homes import WHAT_TO_DO, check_command, made_small, reason_not_to_run
from doc_pages import (
    PAGES,
    commands,
    header_commands,
    looks_like_commands,
    read,
)
from doc_python import names_of_the_reader, run_python
from doc_sandbox import add_demo, add_results, call_tool, fill
from tiny_run import ROOT

# pages that take seconds; all other pages train, export or draw
QUICK = ('docs/inference.md', 'docs/data_sets.md')
FIRST = dict.fromkeys(
    ('README.md', 'docs/start.md'), (pytest.mark.slow, pytest.mark.first)
)
RUN = ('bash', 'inline', 'python')


def is_run(block):
    """Return whether a block has a command to run here."""
    if block.language not in RUN:
        return False
    return block.language == 'python' or not all(
        map(reason_not_to_run, commands(block))
    )


RUNNABLE = [page for page in PAGES if any(map(is_run, read(page)))]
HEADERS = [
    path
    for path in sorted(ROOT.glob('configs/**/*.py'))
    if '# Command: ' in path.read_text()
]


@pytest.fixture(scope='session')
def filled(tmp_path_factory):
    """Folder copied for each page."""
    folder = tmp_path_factory.mktemp('docs') / 'filled'
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        fill(folder, patch)
    return folder


@pytest.fixture
def sandbox(filled, tmp_path, monkeypatch):
    """Copy of the filled folder as current folder."""
    folder = tmp_path / 'checkout'
    shutil.copytree(filled, folder, symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv('MMCLCA_DATA', str(folder / 'data'))
    monkeypatch.setenv('LOCAL_RANK', '0')
    # trace only; translation to C++ takes minutes
    traced = functools.partial(_compile, torch.compile)
    monkeypatch.setattr(torch, 'compile', traced)
    yield folder
    for path in folder.glob('*.py'):
        sys.modules.pop(path.stem, None)


def _compile(compile_, model, **options):
    return compile_(model, **dict(options, backend='eager', mode=None))


def each(pages):
    return pytest.mark.parametrize('page', pages)


def run_page(page, folder):
    """Run all blocks of a page in order."""
    known, variables = names_of_the_reader(folder), {}
    text = (ROOT / page).read_text(encoding='utf-8')
    if 'work_dirs/demo/' in text:
        add_demo(folder)
    if 'sweep' in text:
        add_results(folder)
    for block in read(page):
        if block.language == 'python':
            run_python(block, known, folder)
        elif block.language in RUN and '...' not in block.text:
            run_commands(block, folder, variables)


def run_commands(block, folder, variables):
    """Run the commands in a block, without loop bodies."""
    variables.update(re.findall(r'^(\w+)=(\S+)$', block.text, re.M))
    for words in commands(block):
        words = [Template(word).safe_substitute(variables) for word in words]
        line = ' '.join(words)
        if reason_not_to_run(words) or '$' in line:
            continue
        words = [
            name
            for word in made_small(words)
            for name in sorted(glob(word)) or [word]
        ]
        with pytest.MonkeyPatch.context() as patch:
            error = call_tool(words, patch)
        assert not error, f'{block.place}: {line}\n  {error}{WHAT_TO_DO}'


def problems(words, place, patch, capsys):
    """Check a command without running it; return a list of errors."""
    try:
        check_command(words, patch)
    except (AssertionError, SystemExit) as error:
        if error.args != (0,):  # --help
            said = capsys.readouterr().err.strip() or repr(error)
            return [f'{place}: {" ".join(words)}\n  {said.splitlines()[-1]}']
    return []


@each(PAGES)
def test_commands_name_existing_files_and_options(
    page, tmp_path, monkeypatch, capsys
):
    """Check programs, files, options and extras on a page."""
    monkeypatch.chdir(tmp_path)
    for name in (
        'model.onnx',
        'my_leaves.onnx',
    ):  # the parser checks their existence
        (tmp_path / name).touch()
    (tmp_path / 'configs').symlink_to(ROOT / 'configs')
    wrong = []
    for block in read(page):
        if looks_like_commands(block):
            wrong.append(f'{block.place}: give the fence the language bash')
        if block.language not in ('bash', 'inline'):
            continue
        for words in commands(block):
            wrong += problems(words, block.place, monkeypatch, capsys)
    assert not wrong, '\n'.join(wrong) + WHAT_TO_DO


@each(
    [
        page
        if page in QUICK
        else pytest.param(page, marks=FIRST.get(page, pytest.mark.slow))
        for page in RUNNABLE
    ]
)
def test_commands_and_python_blocks_run(page, sandbox):
    run_page(page, sandbox)


def test_config_headers_have_valid_commands(monkeypatch, capsys):
    wrong = []
    for path in HEADERS:
        name = path.relative_to(ROOT).as_posix()
        found = header_commands(path)
        if all(name not in words for words in found):
            wrong.append(f'{name}: no command of it in {found}')
        for words in found:
            wrong += problems(words, name, monkeypatch, capsys)
    assert len(HEADERS) > 100 and not wrong, '\n'.join(wrong)
