# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What can be seen of a command without running it."""

import functools
import inspect
import re
import runpy
import subprocess
import sys
from importlib import import_module

from doc_homes import with_names
from tiny_run import ROOT

GPU_ONLY = ('--memory', '--amp', 'fp16', 'bf16')
ELIDED = '...'  # in a command whose arguments a page leaves out


def check_command(words, patch):
    """Look a command's files and arguments up.

    Args:
        words (list[str]): The command, without variables before it.
        patch (pytest.MonkeyPatch): For the command line of the tool.

    Raises:
        AssertionError: If something of it does not exist.
    """
    check = CHECKS.get(words[0])
    assert check, f'{words[0]} is not in PROGRAMS (doc_pages.py)'
    for word in words:
        path = re.fullmatch(r'(?:configs|tools|tests)/[\w./-]+', word)
        assert not path or (ROOT / word).exists(), f'there is no {word}'
    if 'cuda' in words:  # what goes with a GPU only
        words = [word for word in words if word not in GPU_ONLY]
    check(with_names(words[1:]), patch)


def _python(words, patch):
    if words[:2] == ['-m', 'mmclca']:
        _verb(words[2:], patch)
        return
    if words[0] == '-m':
        assert words[1] == 'pytest', f'python -m {words[1]} is not looked at'
        return
    assert (ROOT / words[0]).is_file(), f'there is no {words[0]}'
    functions = _functions(words[0])
    if ELIDED in words or 'parse_args' not in functions:
        return
    patch.setattr(sys, 'argv', words)
    parse = functions['parse_args']
    parse(*[words[1:]] * len(inspect.signature(parse).parameters))


def _verb(words, patch):
    """See that a verb of the command takes these arguments."""
    module = import_module(f'mmclca.cli.verbs.{words[0].replace("-", "_")}')
    patch.setattr(module, 'model_of', lambda *_: 'model.pth', raising=False)
    patch.setattr(sys, 'argv', words)
    module.parse_args()


@functools.cache
def _functions(tool):
    return runpy.run_path(str(ROOT / tool))


def _pip(words, patch):
    """See that the extras of mmclca exist."""
    assert words[0] in ('install', 'uninstall'), f'pip {words[0]}'
    text = (ROOT / 'pyproject.toml').read_text()
    for extra in re.findall(r'\[([\w,]+)\]', ' '.join(words)):
        for name in extra.split(','):
            assert re.search(rf'^{name} = \[', text, re.M), f'no extra {name}'


def _make(words, patch):
    text = (ROOT / 'Makefile').read_text()
    for target in words:
        if '=' not in target:
            assert re.search(rf'^{target}:', text, re.M), f'no make {target}'


def _script(words, patch):
    subprocess.run(['bash', '-n', ROOT / words[0]], check=True)


def _mim(words, patch):
    verb, package = words[:2]
    assert verb in ('train', 'test', 'run', 'search', 'gridsearch', 'install')
    if verb == 'run' and words[2] not in ('NAME', ELIDED):
        assert list((ROOT / 'tools').rglob(f'{words[2]}.*')), words[2]


def _nothing(words, patch):
    pass


CHECKS = dict(
    python=_python,
    pip=_pip,
    make=_make,
    bash=_script,
    sh=_script,
    mim=_mim,
    pytest=_nothing,
    git=_nothing,
    ssh=_nothing,
)
