# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Files disguised as photos: no program runs, and no reader waits."""

import os
import runpy
import signal
import socket
import struct
import zlib
from pathlib import Path

import pytest
from PIL import EpsImagePlugin
from tiny_export import INFER

from mmclca.checkpoints.gate.photo_table import PhotoFiles, compute_sha256
from mmclca.datasets.batches import read_image
from mmclca.datasets.decoding import read_bgr
from mmclca.datasets.image_files import check_image, check_images
from mmclca.datasets.photos import list_images
from mmclca.datasets.photos.copies import summarize_images
from mmclca.fitting.pictures import Pictures
from mmclca.page import read_photo
from mmclca.utils.files import read_lines

EPS = b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nbomb\n'


def huge_png(width, height):
    """Small file with a large size in its header: a decompression bomb."""

    def chunk(name, content):
        body = name + content
        crc = struct.pack('>I', zlib.crc32(body))
        return struct.pack('>I', len(content)) + body + crc

    header = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(3 * width + 1))
    parts = [(b'IHDR', header), (b'IDAT', data), (b'IEND', b'')]
    return b'\x89PNG\r\n\x1a\n' + b''.join(chunk(*part) for part in parts)


def listen(name):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(name)


TRAPS = {
    'pipe': os.mkfifo,
    'device': lambda name: os.symlink(os.devnull, name),
    'socket': listen,
    'folder': os.mkdir,
    'program': lambda name: Path(name).write_bytes(EPS),
    'bomb': lambda name: Path(name).write_bytes(huge_png(20001, 10000)),
    'larger': lambda name: Path(name).write_bytes(huge_png(60000, 60000)),
}


def refused(read, *errors):
    """Make a function that returns the error message of a reader."""

    def reason(path):
        with pytest.raises(errors or (OSError, ValueError)) as error:
            read(path)
        return str(error.value)

    return reason


COPIES = Pictures(Path('copies'), PhotoFiles({'a.jpg': 'a'}))
READERS = dict(
    check_image=check_image,
    check_images=lambda path: check_images([path])[path],
    summarize_images=lambda path: summarize_images([path])[path].problem,
    read_bgr=refused(read_bgr),
    read_image=refused(read_image, ValueError),
    read_photo=refused(read_photo, ValueError),
    thumbnail=lambda path: 'none' * (not COPIES.thumbnail(path, '')['src']),
    infer_onnx=lambda path: (
        'none' * (runpy.run_path(str(INFER))['read'](Path(path)) is None)
    ),
)


@pytest.fixture(autouse=True)
def no_wait(monkeypatch, tmp_path):
    """Fail if a reader waits or runs a program."""

    def run(*_, **__):
        pytest.fail('Ghostscript runs')

    monkeypatch.setattr(EpsImagePlugin, 'Ghostscript', run)
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail('it waits'))
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings('ignore::PIL.Image.DecompressionBombWarning')
@pytest.mark.parametrize('trap', TRAPS)
def test_every_reader_refuses_trap(trap):
    TRAPS[trap]('a.jpg')
    said = {name: read('a.jpg') for name, read in READERS.items()}
    for name in ('thumbnail', 'infer_onnx'):
        assert said.pop(name) == 'none'
    terms = dict(program='PostScript', bomb='200 million')
    terms |= dict.fromkeys(('pipe', 'device'), 'pipe, device or socket')
    assert all(x and terms.get(trap, '') in x for x in said.values()), said


def test_lists_do_not_wait_for_pipe():
    os.mkfifo('classes.txt')
    Path('list.txt').write_text('a.jpg 0\n')
    assert list_images('list.txt').names == ['0']
    with pytest.raises(OSError, match='pipe'):
        read_lines('classes.txt')
    with pytest.raises(ValueError, match='folder or a .txt list'):
        list_images('classes.txt')
    assert compute_sha256('classes.txt') is None
