# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Kill tools/train.py while it writes a checkpoint."""

import json
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_run import ROOT, environment, write_run

KILLS, EPOCHS = 6, 8

# Checkpoints are written in small blocks. The process kills itself in one
# write after some blocks. The journal lists all started writes.
PLUG_IN = """
import builtins, io, json, os, signal
from pathlib import Path

begun, plain = 0, open
number, fraction = json.loads(os.environ['KILL_AT'])

class Parts(io.FileIO):
    def write(self, content):
        global begun
        begun += 1
        with plain('journal.txt', 'a') as journal:
            journal.write(Path(self.name).name + '\\n')
        content = bytes(content)
        end = len(content) if begun != number else int(
            min(fraction, 1) * len(content))
        size = 4096
        for start in range(0, end, size):
            super().write(content[start:min(start + size, end)])
        if begun == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return len(content)

def open_in_parts(file, mode='r', *arguments, **keywords):
    if mode == 'wb' and str(file).endswith('.pth'):
        return Parts(file, 'w')
    return plain(file, mode, *arguments, **keywords)

def open_path(path, mode='r', *arguments, **keywords):
    return open_in_parts(path, mode, *arguments, **keywords)

builtins.open = io.open = open_in_parts
Path.open = open_path  # in Python 3.10 it keeps the io.open of its import
"""

CONFIG = """
_base_ = 'tiny.py'
custom_imports = dict(imports=['kill_in_a_write'])
train_cfg = dict(max_epochs=EPOCHS)
default_hooks = dict(checkpoint=dict(
    type='CheckpointHook', interval=1, max_keep_ckpts=1,
    save_best='accuracy/top1'))
"""


@pytest.fixture
def train(tmp_path):
    """Run tools/train.py until it ends or is killed."""
    write_run(tmp_path)
    (tmp_path / 'kill_in_a_write.py').write_text(PLUG_IN)
    (tmp_path / 'killed.py').write_text(CONFIG.replace('EPOCHS', str(EPOCHS)))

    def train(number, fraction=1.0):
        kill_at = json.dumps([number, fraction])
        return subprocess.run(
            [sys.executable, ROOT / 'tools/train.py', 'killed.py', '--resume'],
            cwd=tmp_path,
            env=environment(tmp_path, KILL_AT=kill_at),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    return train


def epoch_of(path):
    """Return the epoch of a complete checkpoint."""
    return torch.load(path, weights_only=False)['meta']['epoch']


def epochs_on_disk(work_dir):
    """Return the epoch in ``last_checkpoint`` and the newest epoch."""
    last = epoch_of(Path((work_dir / 'last_checkpoint').read_text()))
    return last, max(map(epoch_of, work_dir.glob('epoch_*.pth')))


@pytest.mark.slow
def test_training_resumes_if_killed_while_writing(train, tmp_path):
    work_dir, draw = tmp_path / 'work_dirs/killed', random.Random(0)
    moments = [(2, 0.5)]  # a first checkpoint exists
    moments += [
        (draw.choice([1, 1, 2, 3]), draw.choice([0, draw.random(), 1]))
        for _ in range(KILLS - 1)
    ]
    written, resumed = 0, []
    for number, fraction in moments:
        run = train(number, fraction)
        assert run.returncode == -signal.SIGKILL, run.stdout
        if written:
            resumed += map(
                int, re.findall(r'resumed epoch: (\d+)', run.stdout)
            )
            assert resumed[-1] >= written  # no epoch is lost
        journal = (tmp_path / 'journal.txt').read_text().splitlines()
        (tmp_path / 'journal.txt').unlink()
        whole = [int(re.search(r'epoch_(\d+)', x)[1]) for x in journal[:-1]]
        written = max([written, *whole])
        last, newest = epochs_on_disk(work_dir)
        assert newest >= last >= written
    run = train(None)
    assert run.returncode == 0, run.stdout
    assert epochs_on_disk(work_dir) == (EPOCHS, EPOCHS)
    assert not list(work_dir.glob('.*'))
    (best,) = work_dir.glob('best_*.pth')
    assert epoch_of(best)
    logs = ''.join(log.read_text() for log in work_dir.glob('*/*.log'))
    trained = re.findall(r'Epoch\(train\)\s+\[(\d+)\]\[4/4\]', logs)
    assert set(map(int, trained)) == set(range(1, EPOCHS + 1))
