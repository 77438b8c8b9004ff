# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Commands that cannot write, or are killed, keep the old file whole."""

import os
import resource
import shutil
import signal
import time
from contextlib import redirect_stderr
from functools import partial
from io import StringIO

import pytest
from full_disk import contents, full_disk
from test_every_tool import answer, fitted, folder, run_words  # noqa: F401

# arguments of a command, and a file that it replaces
LINES = """
predict tiny.pth new --out p.csv > p.csv
predict tiny.pth new --show-dir p > p/elm/0.png.png
predict model new --out m.json > m.json
probe tiny.pth --images data --out p.pth > p.pth
retrieval tiny.pth --gallery data --queries new --out r.csv > r.csv
retrieval tiny.pth --gallery data --save-index i.safetensors > i.safetensors
open-set tiny.pth --known data --out t.json > t.json
fit photographs FIT --out model --overwrite > model/model.pth
add-class model unknown --name larch > model/model.pth
report model > model/report.html
export plain --out plain.onnx > plain.onnx
export tiny.py tiny.pth --format pt2 --out t.pt2 > t.pt2
publish-model tiny.pth published > tiny.pth
train tiny.py --work-dir w > w/epoch_1.pth
test tiny.py tiny.pth --out tested.pkl > tested.pkl
test tiny.py tiny.pth --out e.json --out-item metrics > e.json
test tiny.py tiny.pth --show-dir shown --interval 8 > tiny.py
analyze-results tiny.py tested.pkl --out-dir a > a/fail/fail.json
confusion-matrix tiny.py tested.pkl --out m.pkl > m.pkl
confusion-matrix tiny.py tested.pkl --show-path m.png > m.png
draw-reduction tiny.py tiny.pth data/elm/0.png --out d.png > d.png
vis-tsne tiny.py SMALL --work-dir plane > plane/tsne_pre_logits.png
browse-dataset tiny.py -o seen -n 1 > seen/00000_0.png
split-folder data --out lists --force > lists/train.txt
synthetic-leaves leaves --classes 2 --size 32 > leaves/train.txt
throughput tiny.py --methods none --rounds 1 --out s.csv > s.csv
"""
LINES = dict(x.split(' > ') for x in LINES.strip().splitlines())
SHORT = dict(
    FIT='--weights weights/tiny.safetensors --probe-only --runtime pytorch',
    SMALL='--checkpoint tiny.pth --perplexity 3 --n-iter 250',
)
# logs, and what the next call resumes or writes again
RESUMED = r'.*\d{8}_\d{6}|work_dirs|leaves|model/(\.draft|features|log.txt)'
TRIES = 4


@pytest.fixture(scope='module')
def run(answer, fitted, folder):  # noqa: F811
    """Run a command line; return exit code and errors."""
    answer('plain')

    def run(line):
        for name, words in SHORT.items():
            line = line.replace(name, words)
        with redirect_stderr(StringIO()) as errors:
            code, _ = run_words('mmclca', line.split(), folder)
        return code, errors.getvalue()

    restore(folder)
    assert run('test tiny.py tiny.pth --out tested.pkl')[0] == 0
    return run


def restore(folder):  # noqa: F811
    """Restore the model of fit, to add the same class again."""
    shutil.rmtree(folder / 'model', ignore_errors=True)
    shutil.copytree(folder / 'fitted', folder / 'model')
    for path in folder.glob('published*'):
        path.unlink()


def refuse(random, run, line, folder):  # noqa: F811
    """Check a command on a disk that refuses to write."""
    restore(folder)
    size = (folder / LINES[line]).stat().st_size
    before = contents(folder, RESUMED)
    with full_disk(random, folder, size):
        code, errors = run(line)
    assert code == 1 and 'Traceback' not in errors, (code, errors)
    assert errors.count(': error: ') == 1, errors
    assert contents(folder, RESUMED) == before, errors


def kill(random, run, line, folder):  # noqa: F811
    """Kill a command in a write, or at any time."""
    restore(folder)
    file, in_write = folder / LINES[line], random.random() < 0.7
    before = file.read_bytes()
    child = os.fork()
    if child == 0:
        if in_write:  # the kernel kills with SIGXFSZ
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            limit = random.randrange(len(before))
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        os._exit(run(line)[0])
    if not in_write:
        time.sleep(random.random())
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or not in_write, status
    after = file.read_bytes()
    # throughput replaces its files after each model
    ended = not in_write or line.startswith('throughput')
    complete = ended and len(after) >= 0.5 * len(before)
    assert after == before or complete, file


@pytest.mark.hostile
@pytest.mark.parametrize('line', LINES)
@pytest.mark.parametrize('attempt', [refuse, kill])
def test_old_file_is_kept_if_a_command_cannot_write(
    run,
    attempt,
    line,
    attack,
    folder,  # noqa: F811
):
    code, errors = run(line)
    assert code == 0, errors
    attack.run(
        f'{attempt.__name__} to write: {line:.40}',
        1 if line.startswith('export') else TRIES,
        partial(attempt, run=run, line=line, folder=folder),
    )
