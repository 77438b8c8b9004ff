# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Commands on all documentation pages, and Python blocks of the first ones.

Arguments of commands are parsed; the tests of each tool run it.
"""

import re
import runpy
import shutil
import subprocess
import sys
from functools import partial

import pytest
import torch
from doc_pages import (
    PAGES,
    PROGRAMS,
    commands,
    header_commands,
    looks_like_commands,
    read,
)
from mmengine.config import Config
from mmengine.registry import Registry
from tiny_model import write_tiny
from tiny_photos import write_photos, write_weights
from tiny_run import ROOT

import mmclca
from mmclca import registry
from mmclca.cli.main import get_parser

HEADERS = [
    path
    for path in sorted(ROOT.glob('configs/**/*.py'))
    if '# Command: ' in path.read_text()
]
GPU_ONLY = ('--device', 'cuda', '--memory', '--amp', 'fp16', 'bf16')
COPIED = {'infer_onnx.py': 'tools/deployment/infer_onnx.py'}
FILES = ('model.onnx', 'my_leaves.onnx')  # parsers check that they exist


def check_command(words, patch):
    """Check files and arguments of a command without running it."""
    program, *words = words
    assert program in PROGRAMS, f'{program} is not in PROGRAMS'
    for word in words:
        path = re.fullmatch(r'(?:configs|tools|tests)/[\w./-]+', word)
        assert not path or (ROOT / word).exists(), f'there is no {word}'
    if program == 'python':
        if 'cuda' in words:
            words = [word for word in words if word not in GPU_ONLY]
        patch.setattr(sys, 'argv', words)
        _parse(*words)
    elif program in CHECKS:
        CHECKS[program](*words)


def _parse(first, *words):
    if first == '-m':
        if words[0] == 'mmclca':
            sys.argv[:2] = []
            get_parser(words[1]).parse_args()
        return
    script = ROOT / COPIED.get(first, first)
    stub = re.search(r"run_command\('([\w-]+)'\)", script.read_text())
    if '...' in words:  # omitted arguments
        return
    if stub:
        get_parser(stub[1]).parse_args()
    elif parse := runpy.run_path(str(script)).get('parse_args'):
        parse()


def _pip(*words):
    text = (ROOT / 'pyproject.toml').read_text()
    for extra in re.findall(r'\w+(?=[^\[]*\])', ' '.join(words)):
        assert re.search(rf'^{extra} = \[', text, re.M), f'no extra {extra}'


def _make(*words):
    text = (ROOT / 'Makefile').read_text()
    for target in words:
        if '=' not in target:
            assert re.search(rf'^{target}:', text, re.M), f'no make {target}'


def _shell(script, *_):
    subprocess.run(['bash', '-n', ROOT / script], check=True)


def _mim(verb, _, tool='NAME', *__):
    if verb == 'run' and tool not in ('NAME', '...'):
        assert list((ROOT / 'tools').rglob(f'{tool}.*')), tool


CHECKS = dict(pip=_pip, make=_make, bash=_shell, sh=_shell, mim=_mim)


@pytest.fixture
def problems(tmp_path, monkeypatch, capsys):
    """Return a function that lists the errors in a command."""
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        (tmp_path / name).touch()
    (tmp_path / 'configs').symlink_to(ROOT / 'configs')

    def problems(words, place):
        try:
            check_command(words, monkeypatch)
        except (AssertionError, OSError, SystemExit) as error:
            if error.args != (0,):  # --help
                said = capsys.readouterr().err.strip() or repr(error)
                return [f'{place}: {" ".join(words)}\n  {said}']
        return []

    return problems


@pytest.mark.parametrize('page', PAGES)
def test_commands_name_existing_files_and_options(page, problems):
    wrong = []
    for block in read(page):
        if looks_like_commands(block):
            wrong.append(f'{block.place}: give the fence the language bash')
        if block.language in ('bash', 'inline'):
            for words in commands(block):
                wrong += problems(words, block.place)
    assert not wrong, '\n'.join(wrong)


def test_config_headers_have_valid_commands(problems):
    wrong = []
    for path in HEADERS:
        name = path.relative_to(ROOT).as_posix()
        found = header_commands(path)
        if all(name not in words for words in found):
            wrong.append(f'{name}: no command of it in {found}')
        for words in found:
            wrong += problems(words, name)
    assert len(HEADERS) > 100 and not wrong, '\n'.join(wrong)


def test_types_on_pages_are_registered():
    registries = [
        x for x in vars(registry).values() if isinstance(x, Registry)
    ]
    known = {name for one in registries for name in one.module_dict}
    # that page shows a misspelt type
    for page in {*PAGES} - {'docs/troubleshooting.md'}:
        text = (ROOT / page).read_text(encoding='utf-8')
        own = re.findall(r'class (\w+)', text)
        names = {*re.findall(r"type='mmclca\.(\w+)'", text)}
        assert not names - known - {*own}, page


def blocks(page):
    """Return the Python blocks of a page."""
    return [block.text for block in read(page) if block.language == 'python']


def test_config_in_readme_builds_a_model(tmp_path):
    (text,) = blocks('README.md')
    (tmp_path / 'clca.py').write_text(text)
    with torch.device('meta'):
        model = registry.MODELS.build(
            Config.fromfile(tmp_path / 'clca.py').model
        )
    assert type(model.backbone.reducer).__name__ == 'EViT'


@pytest.mark.slow
@pytest.mark.first
def test_python_in_start_fits_and_predicts(tmp_path, monkeypatch, capsys):
    (text,) = blocks('docs/start.md')
    monkeypatch.chdir(tmp_path)
    write_photos(tmp_path).rename('photos')
    shutil.copytree('photos/ash', 'new_leaves')
    small = dict(weights=write_weights(tmp_path), runtime='pytorch')
    fit = partial(mmclca.fit, probe_only=True, **small)
    monkeypatch.setattr(mmclca, 'fit', fit, raising=False)
    exec(text, {})
    assert 'ash' in capsys.readouterr().out.splitlines()[-1]


def test_python_in_inference_predicts_and_draws(tmp_path, monkeypatch):
    write_tiny(tmp_path)
    monkeypatch.chdir(tmp_path)
    shutil.copy('tiny.pth', 'best.pth')
    (source, *_) = sorted(tmp_path.glob('data/*/*.png'))
    (tmp_path / 'new_leaves').mkdir()
    for name in ('new_leaves/1.png', 'a.jpg', 'b.jpg'):
        shutil.copy(source, name)
    exec('\n'.join(blocks('docs/inference.md')), {})
    for name in ('results.csv', 'results.json', 'a_seen.png'):
        assert (tmp_path / name).stat().st_size
