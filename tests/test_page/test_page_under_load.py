# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The command ``page`` under load, with memory, files and terminal output."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
import torch
from tiny_model import write_tiny
from tiny_run import environment

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

import httpx

from mmclca.page.photos import draw_examples

ALONE, USERS, SECONDS = 200, 50, 180
MEGABYTES = 150  # growth with all users at once
PAGE = [sys.executable, '-m', 'mmclca', 'page', 'tiny.pth', '--device', 'cpu']
# requests that no page sends, answered with 4xx or 5xx
FORGED = [
    ('queue/join', dict(data=[1], fn_index=999, session_hash='a')),
    ('queue/join', dict(data=['a', {}, 'none'], fn_index=1)),
    ('run/predict', dict(data=[[[]]], fn_index=0)),
    ('upload', []),
]


@pytest.fixture
def page(tmp_path):
    """Process of the page with its standard error in a file."""
    torch.manual_seed(0)
    write_tiny(tmp_path)
    (tmp_path / 'temporary').mkdir()
    options = dict(cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    options['env'] = environment(TMPDIR=str(tmp_path / 'temporary'))
    with (tmp_path / 'errors.txt').open('w') as errors:
        process = subprocess.Popen(PAGE, stderr=errors, **options)
        yield process
        process.kill()


async def call(client, session, number, data):
    """Send an event to the page as a browser does, and wait for its end."""
    body = dict(data=data, fn_index=number, session_hash=session)
    (await client.post('queue/join', json=body)).raise_for_status()
    address = f'queue/data?session_hash={session}'
    async with client.stream('GET', address) as answer:
        async for line in answer.aiter_lines():
            found = json.loads(line[5:]) if line.startswith('data') else {}
            if found.get('msg') == 'process_completed':
                assert found['success'], found
                return


async def classify(client, event, leaf, session):
    """Upload and classify a photo; return the seconds."""
    start = time.perf_counter()
    sent = await client.post('upload', files=dict(files=('leaf.png', leaf)))
    file = dict(path=sent.json()[0], meta=dict(_type='gradio.FileData'))
    await call(client, session, event, [file, None, []])
    return time.perf_counter() - start


async def event_of(client):
    """Return the number of the event that reads and names a photo."""
    config = (await client.get('../config')).json()
    parts = {
        part['id']: part['props'].get('elem_id')
        for part in config['components']
    }
    return next(
        event['id']
        for event in config['dependencies']
        if event['outputs'] and parts[event['outputs'][0]] == 'leaf'
    )


async def measure(client, leaf, memory):
    """Return seconds per photo alone and at once, and memory before that."""
    event = await event_of(client)

    async def work(end):
        times, session = [], uuid4().hex
        while len(times) < ALONE and time.perf_counter() < end:
            times.append(await classify(client, event, leaf, session))
        return times

    alone, before = await work(float('inf')), memory()
    end = time.perf_counter() + SECONDS
    found = await asyncio.gather(*(work(end) for _ in range(USERS)))
    for path, body in FORGED:
        assert (await client.post(path, json=body)).status_code >= 400
    return alone, sum(found, []), before


@pytest.mark.hostile
def test_page_stays_fast_and_small_under_load(page, tmp_path, attack):
    leaf = Path(draw_examples(tmp_path, 1)[0]).read_bytes()
    address = re.search(r'http\S+/', page.stdout.readline())[0]
    status = Path(f'/proc/{page.pid}/status')

    def memory():
        return int(re.search(r'VmRSS:\s+(\d+)', status.read_text())[1]) / 1024

    async def run():
        address_of = dict(base_url=f'{address}gradio_api/', trust_env=False)
        async with httpx.AsyncClient(timeout=120, **address_of) as client:
            return await measure(client, leaf, memory)

    alone, together, before = asyncio.run(run())
    grown = memory() - before
    page.send_signal(signal.SIGTERM)
    page.wait(60)
    one, many = (np.percentile(times, 95) for times in (alone, together))
    name = (
        f'page: {USERS} users, p95 {one:.2f} -> {many:.1f} s, +{grown:.0f} MB'
    )
    count = len(alone) + len(together)
    attack.record(name, count, count)
    assert len(alone) == ALONE and many < 3 * USERS * one
    assert grown < MEGABYTES
    assert 'Traceback' not in (tmp_path / 'errors.txt').read_text()
    left = (tmp_path / 'temporary').rglob('*')
    assert not [*filter(Path.is_file, left)]
