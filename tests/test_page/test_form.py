# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Uploads to the form, which may be hostile, and the process of a fit."""

import json
import logging
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from zipfile import ZIP_DEFLATED, ZIP_LZMA, ZipFile, ZipInfo

import pytest
import report_folder
from full_disk import contents, file_size_limit
from tiny_photos import write_photos

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

import gradio as gr

from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.record import FitRecord
from mmclca.page import child, downloads, form, handlers, job, process, uploads
from mmclca.page import progress as page_progress
from mmclca.page.form_layout import build_form
from mmclca.page.identify import IdentifyTab
from mmclca.page.progress import FitProgress
from mmclca.utils.events import (
    ErrorEvent,
    LineEvent,
    ProgressEvent,
    ResultEvent,
    StepEvent,
    read_events,
)

ENDLESS = (
    'import time; from mmclca.utils.events import *\n'
    'connect_to_parent().send(LineEvent("a line"))\n'
    'from mmclca.utils.messages import track\n'
    'print("of a library", flush=True)\n'
    'for step in track(range(1000), "Features"): time.sleep(0.05)'
)


@pytest.fixture
def photos(tmp_path):
    """Folder with photos of four classes and a hidden file."""
    folder = write_photos(tmp_path, per_class=2)
    (folder / 'ash/.hidden').touch()
    return folder


@pytest.fixture
def packed(photos, tmp_path):
    """ZIP archive of the photos."""
    path = tmp_path / 'uploads/leaves.zip'
    path.parent.mkdir()
    with ZipFile(path, 'w', ZIP_DEFLATED) as archive:
        for file in photos.rglob('*.*'):
            archive.write(file, f'leaves/{file.relative_to(photos)}')
        archive.writestr('__MACOSX/leaves/ash/._0.png', 'hidden')
    return path


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """Form with its models in ``models``, and the warnings of its page."""
    warn = lambda text, **_: texts.append(text)  # noqa: E731
    monkeypatch.setattr(handlers.gr, 'Warning', warn)
    texts, tab = [], IdentifyTab(tmp_path / 'uploads')
    (tmp_path / 'models').mkdir()
    return form.FitForm(tab, tmp_path / 'models', {}), texts


def test_zip_is_stored_without_hidden_files_or_links(
    packed, photos, shown, tmp_path
):
    link = ZipInfo('leaves/elm/link.png')
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with ZipFile(packed, 'a') as archive:
        archive.writestr(link, '/etc/passwd')
        for name in ('../../../out.png', '/leaves/out.png'):
            archive.writestr(name, 'outside')
    page, texts = shown
    before = contents(tmp_path, 'models|uploads')
    page.add([dict(path=str(packed))], '[]', None)
    assert not texts and not packed.exists()
    assert contents(tmp_path, 'models|uploads') == before
    stored = tmp_path / 'models/leaves/photos'
    expected = contents(photos, '.*hidden')
    assert expected.items() <= contents(stored).items()
    names = [x.name for x in stored.rglob('*') if not x.is_symlink()]
    assert 'link.png' in names and not [x for x in names if x[0] == '.']


def damaged(packed, photos):
    packed.write_bytes(packed.read_bytes()[:-50])


def encrypted(packed, photos):
    content, entry = packed.read_bytes(), b'PK\1\2\24\3\24\0'
    packed.write_bytes(content.replace(entry + b'\0', entry + b'\1'))


def bomb(packed, photos):
    with ZipFile(packed, 'a', ZIP_DEFLATED) as archive:
        archive.writestr('leaves/ash/bomb.png', bytes(2**21))


def many_entries(packed, photos):
    with ZipFile(packed, 'a') as archive:
        for number in range(100):
            archive.writestr(f'leaves/.{number}', '')


def damaged_lzma(packed, photos):
    with ZipFile(packed, 'a', ZIP_LZMA) as archive:
        archive.writestr('leaves/ash/2.png', 'a' * 99)
    content = packed.read_bytes()
    packed.write_bytes(content.replace(b'\t\x04\x05\0]', b'\t\x04\x05\0\xff'))


def one_class(packed, photos):
    with ZipFile(packed, 'w') as archive:
        archive.write(photos / 'ash/0.png', 'ash/0.png')


def archives(packed, photos):
    with ZipFile(packed, 'w') as archive:
        archive.writestr('leaves/ash.zip', 'PK')
        archive.writestr('leaves/oak.zip', 'PK')


def long_name(packed, photos):
    with ZipFile(packed, 'a') as archive:
        archive.writestr(f'leaves/ash/{"x" * 256}.png', 'PK')


@pytest.mark.parametrize(
    'change, words',
    [
        (archives, 'archives'),
        (long_name, '255 bytes'),
        (damaged, 'cannot be read'),
        (encrypted, 'encrypted'),
        (bomb, 'limit is 1 MB'),
        (many_entries, 'too many entries'),
        (damaged_lzma, 'cannot be read'),
        (one_class, 'two classes'),
    ],
)
def test_refused_zip_leaves_nothing(
    change, words, packed, photos, shown, tmp_path, monkeypatch
):
    monkeypatch.setattr(uploads, 'MEGABYTES', 1)
    monkeypatch.setattr(uploads, 'MAX_FILES', 10)
    change(packed, photos)
    page, texts = shown
    page.add([dict(path=str(packed))], '', 'leaves')
    (text,) = texts
    assert words in text and '\n' not in text and '.photos' not in text
    assert not [*(tmp_path / 'models').iterdir()]


def add_folder(page, photos, name, places=None, outer='p'):
    """Upload a folder as a browser does: each file by its name only."""
    files = sorted(photos.rglob('*.png'))
    names = [f'{outer}/{file.relative_to(photos)}' for file in files]
    folder = page.identify_tab.uploads
    sent = [folder / f'{number}/x.png' for number in range(len(files))]
    for file, copy in zip(files, sent, strict=True):
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    upload = [dict(path=str(path)) for path in places or sent]
    page.add(upload, json.dumps(names), name)


def test_folder_is_stored_once_and_kept_if_another_has_its_name(
    photos, shown, tmp_path
):
    page, texts = shown
    for _ in range(2):
        add_folder(page, photos, '')
    kept = contents(tmp_path / 'models')
    assert len(kept) == 8 and 'p/photos/ash/0.png' in kept and not texts
    (photos / 'ash/0.png').unlink()
    add_folder(page, photos, 'p')
    (text,) = texts
    assert 'another name' in text and contents(tmp_path / 'models') == kept
    add_folder(page, photos, 'p', outer='q')
    assert (tmp_path / 'models/q/photos/ash/1.png').exists()


@pytest.mark.parametrize('name', ['../x', '/x', '.x', 'a/b', 'x' * 65, '\0'])
def test_form_refuses_a_name(name, photos, shown, tmp_path):
    page, texts = shown
    add_folder(page, photos, name)
    page.fit(name)
    [*page.pack(name)]
    assert len(texts) > 3 and all('not allowed' in text for text in texts)
    assert not [*(tmp_path / 'models').iterdir()]


def test_form_refuses_forged_paths(photos, shown, tmp_path):
    page, texts = shown
    add_folder(page, photos, 'p', [photos / 'ash/0.png'] * 8)
    assert 'not uploaded' in texts[0] and (photos / 'ash/0.png').exists()
    add_folder(page, photos, 'p', outer='../..')
    add_folder(page, photos, 'p', outer=tmp_path)
    assert all('is not allowed' in text for text in texts[1:])
    assert not [*(tmp_path / 'models').iterdir()]


def test_form_leaves_nothing_if_the_disk_is_full(packed, shown, tmp_path):
    page, texts = shown
    with file_size_limit(1000):
        page.add([dict(path=str(packed))], '', None)
    assert 'File too large' in texts[0] and str(tmp_path) not in texts[0]
    assert not [*(tmp_path / 'models').iterdir()]
    page.add([dict(path=str(packed))], '', None)
    assert 'already deleted' in texts[-1]


@pytest.fixture
def endless(monkeypatch):
    """Job with a process that does not end by itself."""
    monkeypatch.setattr(process, 'COMMAND', [sys.executable, '-c', ENDLESS])
    running = job.Job()
    yield running
    running.cancel()


def test_job_reports_progress_and_refuses_a_second_one(endless):
    endless.start('leaves', {})
    end = time.monotonic() + 30
    while 'left' not in endless.describe() and time.monotonic() < end:
        time.sleep(0.1)
    assert 'Features' in endless.describe()
    assert endless.lines == ['a line']
    with pytest.raises(ValueError, match='leaves is still training'):
        endless.start('others', {})
    endless.cancel()
    assert not endless.is_running and 'left' not in endless.describe()
    assert not endless.has_failed


@pytest.mark.parametrize(
    'end, failure',
    [
        ('channel.send(ErrorEvent("no photos", False)); sys.exit(1)', 'no'),
        ('channel.send(ErrorEvent("KeyError", True)); sys.exit(1)', 'report'),
        ('sys.exit(3)', 'report'),
        ('os.kill(os.getpid(), 9)', 'memory'),
        ('os.write(3, b"{"); os.kill(os.getpid(), 2)', ''),
        ('', ''),
    ],
)
def test_job_describes_the_end_of_the_process(
    end, failure, endless, monkeypatch
):
    script = (
        'import os, sys; from mmclca.utils.events import *\n'
        f'channel = connect_to_parent(); {end}'
    )
    monkeypatch.setattr(process, 'COMMAND', [sys.executable, '-c', script])
    endless.start('leaves', {})
    endless._reader.join(30)
    assert endless.has_failed == bool(failure)
    assert failure in endless.describe()
    assert ('Training failed' in endless.describe()) == bool(failure)


def test_job_is_stopped_soon_if_the_page_ignores_interrupts(endless):
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        endless.start('leaves', {})
        while not endless.lines:
            time.sleep(0.05)
        endless.cancel()
    finally:
        signal.signal(signal.SIGINT, handler)
    # in order, not at the end of the time that it has for this
    assert endless._process._process.returncode == -signal.SIGINT


def test_events_are_read_as_they_were_sent():
    sent = [
        LineEvent('\ta\n"b"'),
        StepEvent('x'),
        ProgressEvent('y', 0.5, None),
        ResultEvent(dict(path='a')),
        ErrorEvent('no', True),
    ]
    script = (
        'from mmclca.utils.events import *\n'
        f'channel = connect_to_parent()\nprint("of a library")\n'
        f'for event in {sent!r}: channel.send(event)'
    )
    with subprocess.Popen(
        [sys.executable, '-c', script],
        stdin=subprocess.PIPE,  # its end would interrupt the child
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert [*read_events([*child.stdout, b'{"kind": "li'])] == sent
        assert b'of a library' in child.stderr.read()


@pytest.mark.parametrize(
    'settings, words, is_bug',
    [
        (dict(photos='gone', out='m'), 'gone', False),
        (dict(colour='red'), 'TypeError', True),
    ],
)
def test_child_reports_wrong_input_and_bugs(
    settings, words, is_bug, monkeypatch, capsys, tmp_path
):
    monkeypatch.chdir(tmp_path)
    sent = []
    parent = SimpleNamespace(send=sent.append)
    monkeypatch.setattr(child, 'connect_to_parent', lambda: parent)
    monkeypatch.setattr(sys, 'argv', ['child', 'fit', json.dumps(settings)])
    assert child.main() == 1
    (error,) = sent
    assert words in error.message and error.is_bug == is_bug
    assert ('Traceback' in capsys.readouterr().err) == is_bug


def test_form_keeps_a_fit_if_another_model_is_shown(
    endless, photos, shown, tmp_path
):
    page, texts = shown
    add_folder(page, photos, 'photos')
    view = page.load()
    assert not view.summary and not view.state
    page.job = endless
    page.fit('photos')
    for view in (page.stop('others'), page.show('others')):
        assert view.name == 'others' and not view.is_running
    assert endless.is_running and page.load().is_running
    assert 'Stopping' in page.stop('photos').state
    endless.cancel()
    assert 'Stopped' in page.show('photos').state and not texts


def build_parts(page):
    """Build the components of a form."""
    with gr.Blocks():
        return build_form(page, gr.State())


def test_loaded_form_keeps_its_photos_without_a_training(
    endless, photos, shown
):
    page, _ = shown
    add_folder(page, photos, 'photos')
    parts = build_parts(page)
    update = parts.show_loaded(page.load())
    assert [*update] == [parts.name]
    assert update[parts.name].choices == [('photos', 'photos')]
    page.job = endless
    page.fit('photos')
    assert parts.upload.folder in parts.show_loaded(page.load())


def test_form_shows_only_the_progress_during_a_training(
    endless, photos, shown
):
    page, _ = shown
    add_folder(page, photos, 'photos')
    parts = build_parts(page)
    page.job = endless
    update = parts.show(page.fit('photos'))
    assert {*update} | {parts.version} == {*parts.outputs}
    assert update[parts.timer].active and update[parts.cancel].visible
    assert not update[parts.start].visible and not update[parts.photos].open
    progress = parts.show_progress(page.show('photos'))
    assert parts.state in progress and parts.upload.folder not in progress


def test_tabs_that_pack_one_model_share_its_files(
    shown, tmp_path, monkeypatch
):
    page, texts = shown
    calls, begun, wait = [], Event(), Event()

    def export(task, settings):
        calls.append(settings['format_name'])
        begun.set()
        assert wait.wait(30)
        Path(settings['out']).mkdir()
        Path(settings['out'], 'sw.js').touch()
        values = dict(same='8', number='8', share='100.0%')
        return [
            dict(key='export.agreement'),
            dict(key='export.same', values=values),
        ]

    monkeypatch.setattr(downloads, 'run_task', export)
    files = model_of(tmp_path / 'models/ash/model')
    files.report.write_text('first')
    packages = []
    tabs = [
        Thread(target=lambda: packages.append([*page.pack('ash')]))
        for _ in range(2)
    ]
    tabs[0].start()
    assert begun.wait(30)
    tabs[1].start()
    wait.set()
    for tab in tabs:
        tab.join(30)
    (first, last), second = packages
    assert [first, last] == second and calls == ['web'] and not texts
    assert [file.name for file in last.files] == [
        'ash report.html',
        'ash model.zip',
        'ash phone app.zip',
    ]
    assert all(file.is_file() for file in last.files)
    assert 'Agreement: 8 of 8' in last.note and 'Preparing' in first.note
    files.report.write_text('second')  # of a resumed training
    *_, newer = page.pack('ash')
    assert newer.files[0].read_text() == 'second' and len(calls) == 2
    assert not last.files[0].exists()


def test_form_refuses_to_pack_a_model_that_is_not_trained(
    photos, shown, tmp_path
):
    page, texts = shown
    add_folder(page, photos, 'p')
    assert [*page.pack('p')] == [] and 'no model yet' in texts[0]


def test_progress_never_goes_back_over_all_steps():
    progress, shares = FitProgress(), []
    events = [
        StepEvent('Checking the photos'),
        StepEvent('Training a first model'),
        *(ProgressEvent('Features', x, 130) for x in (0.1, 0.9, 0.3)),
        ProgressEvent('a <part>', 0.5, 130),
        ProgressEvent('Cross-validation', 0.5, 1),
    ]
    for event in events:
        progress.update(event)
        shares.append(progress.share)
    assert shares == sorted(shares) and 0 < shares[1] < shares[2] < 1
    assert 'Step 2 of 4: Training' in progress.describe()
    progress.update(ProgressEvent('a <part>', 0.5, 130))
    assert '(a &lt;part&gt;)' in progress.describe()
    progress.update(StepEvent('Measuring the latency'))
    assert '(' not in progress.describe() and 0.5 < progress.share < 1


@pytest.mark.parametrize(
    'minutes, words', [(10, 'about 10 minutes left'), (0.2, 'less than a')]
)
def test_progress_tells_the_time_left_for_all_steps(
    monkeypatch, minutes, words
):
    clock = iter([0.0])
    now = [0.0]
    monkeypatch.setattr(
        page_progress.time, 'monotonic', lambda: next(clock, now[0])
    )
    progress = FitProgress()
    assert 'left' not in progress.describe()
    progress.update(ProgressEvent('Features', 0.5, 1))
    now[0] = 60 * minutes * progress.share / (1 - progress.share)
    assert words in progress.describe()


def test_progress_counts_both_fine_tunings():
    progress = FitProgress(photos=500, fine_tunes=True)
    progress.update(StepEvent('Fine-tuning'))
    shares = []
    for title in ('Fine-tuning for the test', 'Fine-tuning on all photos'):
        for share in (0.0, 0.5, 1.0):
            progress.update(ProgressEvent(title, share, 1))
            shares.append(progress.share)
    assert shares == sorted(shares)
    assert shares[1] > shares[0] and shares[4] > shares[3] >= shares[2]


def test_change_that_needs_a_confirmation_is_repeated(endless, monkeypatch):
    script = (
        'import json, sys; from mmclca.utils.events import *\n'
        'force = json.loads(sys.argv[2])["force"]\n'
        'values = dict(before="62.0%", after="9.0%", low="50.0%")\n'
        'reason = {} if force else dict(key="change.would_fall",'
        'values=values)\n'
        f'content = dict(before={report_folder.facts()}) | reason\n'
        'connect_to_parent().send(ResultEvent(content))'
    )
    monkeypatch.setattr(process, 'COMMAND', [sys.executable, '-c', script])
    for answer in (endless.dismiss, endless.confirm):
        change = dict(force=False, change='undo', settings={})
        endless.start('leaves', change, 'change')
        endless._reader.join(30)
        assert 'would fall from 62.0%' in endless.question
        answer()
        endless._reader.join(30)
        assert not endless.question and not endless.has_failed


def test_handler_shows_a_bug_with_its_traceback_in_the_log(capsys):
    def fail(key):
        yield {}[key]

    with pytest.raises(gr.Error, match='KeyError: .*leaf.*report it'):
        [*handlers.report_bugs(fail)('leaf')]
    assert 'yield {}[key]' in capsys.readouterr().err


@pytest.mark.parametrize('paths', ['{', '{}', '[1]', '[' * 100_000])
def test_form_refuses_a_forged_list_of_photos(paths, packed, shown, tmp_path):
    page, texts = shown
    for upload in ([dict(path=str(packed))], ['x'], [None], [dict(path='\0')]):
        page.add(upload, paths, None)
    assert len(texts) == 4 and 'damaged' in texts[0]
    assert all('not uploaded' in text for text in texts[1:])
    assert not [*(tmp_path / 'models').iterdir()]


def model_of(folder, **facts):
    """Model folder with a record as of a stopped training."""
    files = FitFolder(folder)
    folder.mkdir(parents=True)
    content = report_folder.facts()
    content['probe'].update(accuracy=0.62, low=0.5, high=0.75)
    files.write(FitRecord.from_json(content | facts))
    files.model.touch()
    return files


@pytest.mark.parametrize('seconds', [0, 9])
def test_model_is_offered_if_its_training_was_stopped(
    seconds, photos, shown, tmp_path, monkeypatch
):
    monkeypatch.setattr(form, 'load_version', lambda version: None)
    page, texts = shown
    add_folder(page, photos, 'ash')
    model_of(tmp_path / 'models/ash/model', seconds=seconds)
    view = page.show('ash')
    assert 'about 62 get' in view.result and not texts
    assert view.is_ready and view.is_finished == bool(view.state)
    parts = build_parts(page)
    update = parts.show(view)
    assert update[parts.after].visible
    assert update[parts.version] == view.version
    start = update[parts.start]
    assert start.visible == (seconds == 0) and 'Resume' in start.value


def raise_import_error(name):
    raise ImportError('cannot import', name=name)


@pytest.mark.parametrize('name, is_bug', [(None, False), ('mmclca.a', True)])
def test_page_and_its_process_agree_on_bugs(monkeypatch, name, is_bug):
    handler = handlers.report_bugs(raise_import_error)
    with pytest.raises(gr.Error) as shown:
        handler(name)
    assert ('bug' in str(shown.value)) is is_bug

    events = []
    parent = SimpleNamespace(send=events.append)
    monkeypatch.setattr(child, 'connect_to_parent', lambda: parent)
    monkeypatch.setitem(child.TASKS, 'fit', raise_import_error)
    settings = json.dumps(dict(name=name))
    monkeypatch.setattr(sys, 'argv', ['child', 'fit', settings])
    monkeypatch.setattr(logging, 'raiseExceptions', True)
    assert child.main() == 1
    assert [event.is_bug for event in events] == [is_bug]
