# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Refuse arrays with forged object pointers."""

import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest
import torch
from foreign_models import Call
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer
from tiny_run import ROOT, environment

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.opening import open_checkpoint

RECONSTRUCT, SCALAR = (
    value.__reduce__()[0] for value in (np.zeros(1), np.float64(0))
)
POINTERS = struct.pack('<4Q', *range(0x4141414141414141, 0x4141414141414145))


def kind(code, order='|', *state):
    """Dtype with a contradicting state."""
    state = state or (None, None, None, -1, -1, 0)
    return Call(np.dtype, (code, False, True), (3, order, *state))


def array(kind, shape=(4,), data=POINTERS, *rest):
    return Call(
        RECONSTRUCT,
        (np.ndarray, (0,), b'b'),
        (1, shape, kind, False, data, *rest),
    )


def buffer(values):
    """History with forged values."""
    log = HistoryBuffer([1.0], [1])
    log._log_history = values
    return log


F8 = kind('f8', '<')
FIELDS = (None, ('a',), {'a': (kind('O8'), 0)}, 8, 1, 16)
FORGED = dict(
    objects=array(kind('O8'), (1,), POINTERS[:8]),
    objects_with_list_flag=array(
        kind('O8', '|', None, None, None, -1, -1, 63), data=['a'] * 4
    ),
    floats_called_objects=array(
        kind('f8', '<', (kind('O8'), (1,)), None, None, 8, 8, 0)
    ),
    voids=array(kind('V8', '|', *FIELDS)),
    fields_of_floats=array(kind('f8', '|', *FIELDS)),
    dates=array(kind('M8', '<')),
    text_for_numbers=array('O'),
    list_for_bytes=array(F8, data=[object.__name__] * 4),
    changing_bytes=array(F8, data=bytearray(POINTERS)),
    more_than_there_is=array(F8, shape=(2**40,)),
    less_than_there_is=array(F8, shape=(1,)),
    negative=array(F8, shape=(-1,)),
    twice_negative=array(F8, shape=(-2, -2)),
    no_numbers_for_a_shape=array(F8, shape=(4.0,)),
    not_a_text=array(kind('U1', '<'), shape=(8,)),
    scalar_object=Call(SCALAR, (kind('O8'), POINTERS[:8])),
    scalar_void=Call(SCALAR, (kind('V8', '|', *FIELDS), POINTERS[:8])),
    scalar_cut=Call(SCALAR, (F8, POINTERS[:7])),
    scalar_too_long=Call(SCALAR, (F8, POINTERS)),
    history_of_objects=buffer(array(kind('O8'))),
    history_of_texts=buffer(np.array(['a'])),
    attribute_of_a_history=Call(getattr, (HistoryBuffer, 'statistics')),
    attribute_of_settings=Call(getattr, (ConfigDict, 'mean')),
    view=Call(np.ndarray, ((4,), kind('O8'), POINTERS)),
    from_buffer=Call(
        np.arange(2).__reduce_ex__(5)[0], (POINTERS, kind('O8'), (4,), 'C')
    ),
    what_torch_admits_for_itself=Call(SystemExit, ('a',)),
    tensor_of_noted_numbers=Call(
        torch._utils._rebuild_device_tensor_from_numpy,
        (array(F8), torch.float64, 'cpu', False),
    ),
)


@pytest.mark.parametrize('forged', FORGED)
def test_forged_array_is_refused_in_one_line(change, forged):
    path = change(dataset_meta=dict(classes=FORGED[forged]))
    with pytest.raises(CheckpointError, match='evil.pth') as error:
        open_checkpoint(path)
    assert '\n' not in str(error.value)


DRAW = 'visualization/draw_reduction.py'
COMMANDS = [
    'predict.py FILE data',
    'open_set.py FILE --known data',
    'probe.py FILE --images data',
    'retrieval.py FILE --gallery data --queries data',
    'test.py tiny.py FILE',
    'deployment/export.py tiny.py FILE',
    f'{DRAW} tiny.py FILE --leaves 1 --out a.png',
    f'{DRAW} tiny.py --pretrained FILE --leaves 1 --out a.png',
    'model_converters/publish_model.py FILE published',
]
# all tools in one process, to detect a crash
ONE_BY_ONE = """
import runpy, sys
tools, codes = sys.argv[1], []
for line in sys.stdin.read().splitlines():
    tool, *words = line.split()
    sys.argv = [f'{tools}/{tool}', *words]
    try:
        runpy.run_path(sys.argv[0], run_name='__main__')
    except SystemExit as end:
        codes.append(end.code)
print(codes)
"""


@pytest.mark.slow
def test_no_command_crashes_or_names_classes(tiny, change, tmp_path):
    folder = tmp_path / 'tiny'
    shutil.copytree(tiny, folder)
    weights = {'backbone.ln1.weight': torch.full((24,), torch.inf)}
    shutil.move(change(weights=weights), folder / 'infinite.pth')
    path = change(dataset_meta=dict(classes=FORGED['objects']))
    shutil.move(path, folder)
    # publishing copies weights without using them
    evil = [line.replace('FILE', 'evil.pth') for line in COMMANDS]
    use = [line.replace('FILE', 'infinite.pth') for line in COMMANDS[:-1]]
    ended = subprocess.run(
        [sys.executable, '-c', ONE_BY_ONE, ROOT / 'tools'],
        input='\n'.join([*evil, *use]),
        cwd=folder,
        env=environment(),
        text=True,
        capture_output=True,
    )
    assert ended.returncode == 0, ended.stderr
    codes = str([2] * len([*evil, *use]))
    assert ended.stdout.splitlines()[-1] == codes, ended.stderr
    assert ended.stderr.count('evil.pth is refused') == len(evil)
    said = 'infinite.pth: 1 tensors contain NaN, infinite'
    assert ended.stderr.count(said) == len(use), ended.stderr
