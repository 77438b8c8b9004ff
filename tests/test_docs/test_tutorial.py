# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Commands of the tutorial, on a small copy of the dataset's repository."""

import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from doc_pages import commands, read
from PIL import Image
from tiny_photos import write_weights
from tiny_run import ROOT, environment

from mmclca.deployment.web_app import check_web_runtime
from mmclca.utils.files import read_rows
from mmclca.utils.torch_versions import COMPILES, has_torch

TABLE = ROOT / 'examples' / 'coffee_leaves.csv'
ADDRESS = 'https://github.com/esgario/lara2018'
LEAVES = 'classification/dataset/leaf'
COLORS = dict(
    cercospora=(90, 60, 30),
    healthy=(20, 160, 40),
    miner=(200, 200, 160),
    phoma=(40, 40, 40),
    rust=(220, 120, 0),
)


def git(*words, cwd):
    name = '-c', 'user.name=a', '-c', 'user.email=a@b'
    run = subprocess.run(
        ['git', *name, *words], cwd=cwd, check=True, capture_output=True
    )
    return run.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path):
    """Git repository with a small photo for each file of the table."""
    folder = tmp_path / 'repository'
    (folder / LEAVES).mkdir(parents=True)
    random = np.random.default_rng(0)
    for row in read_rows(TABLE):
        noise = random.integers(0, 60, (16, 32, 3))
        pixels = (noise + COLORS[row['class']]).clip(0, 255).astype('uint8')
        Image.fromarray(pixels).save(folder / LEAVES / row['file'])
    # photos that the table does not list
    Image.new('RGB', (32, 16)).save(folder / LEAVES / '9999.jpg')
    (folder / 'app').mkdir()
    (folder / 'app' / 'main.js').touch()
    git('init', '-q', cwd=folder)
    git('add', '.', cwd=folder)
    git('commit', '-qm', 'photos', cwd=folder)
    return folder


@pytest.fixture
def run(repository, tmp_path):
    """Run a command's words in a copy of the working folder."""
    (tmp_path / 'examples').mkdir()
    (tmp_path / 'examples' / TABLE.name).write_bytes(TABLE.read_bytes())
    commit = git('rev-parse', 'HEAD', cwd=repository)
    weights = write_weights(tmp_path)
    env = environment(ROOT) | {
        'GIT_CONFIG_COUNT': '1',
        'GIT_CONFIG_KEY_0': f'url.{repository.as_uri()}.insteadOf',
        'GIT_CONFIG_VALUE_0': ADDRESS,
    }

    def run(*words):
        words = [re.sub(r'^[0-9a-f]{40}$', commit, word) for word in words]
        if words[0] == 'python':
            words[0] = sys.executable
        if 'fit' in words:
            words += ['--weights', str(weights), '--runtime', 'pytorch']
        done = subprocess.run(
            words, cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_table_lists_the_photos_that_the_page_names():
    rows = read_rows(TABLE, 'file', 'class', 'split')
    counts = Counter((row['class'], row['split']) for row in rows)
    assert counts == {
        (name, split): number
        for name in COLORS
        for split, number in (('train', 12), ('test', 30))
    }
    assert len({row['file'] for row in rows}) == len(rows)


@pytest.mark.slow
@pytest.mark.first
def test_commands_of_the_tutorial_run(run, tmp_path):
    blocks = [x for x in read('docs/tutorial.md') if x.language == 'bash']
    (fit,), download, (predict,), (export,) = map(commands, blocks)
    for words in download:
        run(*words)
    assert not (tmp_path / 'coffee' / 'app').exists()
    said = run(*fit)
    assert '60 photos, 5 classes (12 per class)' in said
    assert 'like those in val and test' in said
    assert (tmp_path / 'coffee_model' / 'report.html').exists()
    (line,) = run(*predict).splitlines()
    assert line.startswith(predict[-1]) and 'rust' in line
    try:
        check_web_runtime()
    except OSError as error:
        pytest.skip(str(error))
    if not has_torch(COMPILES):
        pytest.skip(f'export needs torch {COMPILES}')
    run(*export)
    assert (tmp_path / 'coffee_model' / 'web' / 'index.html').exists()
