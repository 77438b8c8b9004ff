# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""``make lint`` fails on what it is there for."""

import os
import shutil
import subprocess
import sys

import pytest
import yaml
from tiny_run import ROOT

CLEAN = """# A comment
def f():
    return 1
"""

MODEL = """model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='VisionTransformer',
        arch='deit-tiny',
        img_size=448,
        patch_size=16,
        drop_path_rate=0.1,
    ),
    head=dict(type='VisionTransformerClsHead', num_classes=4),
)
"""

PLANTED = {
    'ruff-check': ('tools/bad.py', 'import os\n'),
    'ruff-format': ('mmclca/bad.py', 'name = "double quotes"\n'),
    'codespell': ('docs/bad.md', 'Some te' + 'h text.\n'),
    'duplicates': ('configs/b/bad.py', MODEL),
}


@pytest.fixture
def tree(tmp_path):
    """A small project that lint has nothing to say about."""
    for folder in (
        'mmclca',
        'tools/dev',
        'configs/a',
        'configs/b',
        'demo',
        'docs',
    ):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / 'tests').mkdir()
    (tmp_path / 'docs/conf.py').write_text(CLEAN)
    for name in (
        'pyproject.toml',
        'setup.py',
        'Makefile',
        'tools/dev/lint.sh',
    ):
        shutil.copy2(ROOT / name, tmp_path / name)
    (tmp_path / 'mmclca' / '__init__.py').write_text(CLEAN)
    (tmp_path / 'configs' / 'a' / 'good.py').write_text(MODEL)
    return tmp_path


def lint(tree, *checks):
    return subprocess.run(
        ['sh', tree / 'tools' / 'dev' / 'lint.sh', *checks],
        env=dict(os.environ, PYTHON=sys.executable),
        capture_output=True,
        text=True,
    )


def test_clean_code_passes_all_checks(tree):
    run = lint(tree)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.endswith('== lint: all clean\n')


@pytest.mark.parametrize('check', PLANTED)
def test_planted_error_fails(check, tree):
    name, text = PLANTED[check]
    (tree / name).write_text(text)
    run = lint(tree, check)
    assert run.returncode == 1
    assert f'== lint failed: {check}\n' in run.stderr


def test_all_failing_checks_are_named(tree):
    for name, text in PLANTED.values():
        (tree / name).write_text(text)
    run = lint(tree)
    assert run.stderr.endswith(f'== lint failed: {" ".join(PLANTED)}\n')


def test_duplicates_are_seen_across_package_tools_and_configs(tree):
    code = MODEL.replace('model = dict(', 'def build():\n    return dict(')
    (tree / 'configs' / 'a' / 'good.py').write_text('x = 1\n')
    (tree / 'tools' / 'one.py').write_text(code)
    (tree / 'mmclca' / 'two.py').write_text(code)
    run = lint(tree, 'duplicates')
    assert run.returncode == 1
    assert 'mmclca.two' in run.stdout and 'one' in run.stdout


def test_unknown_check_is_refused(tree):
    run = lint(tree, 'spelling')
    assert run.returncode == 2
    assert 'no check is called spelling' in run.stderr


def test_pre_commit_runs_the_same_checks():
    text = (ROOT / '.pre-commit-config.yaml').read_text()
    (repo,) = yaml.safe_load(text)['repos']
    for hook, check in zip(repo['hooks'], PLANTED, strict=True):
        assert hook['id'] == check
        assert hook['entry'] == f'sh tools/dev/lint.sh {check}'
        assert hook['language'] == 'system'
