# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The complete report, parsed as HTML."""

from base64 import b64decode
from html.parser import HTMLParser
from io import BytesIO

import pytest
from golden import golden
from PIL import Image
from report_folder import CLASSES, TAG, facts, write_folder

from mmclca.fitting import report
from mmclca.fitting.console_text import near_duplicate_lines, result_lines
from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.report import write_report

SECTIONS = ['folder', 'classes', 'confused', 'doubtful', 'errors', 'curve']
LAST = ['cost', 'made', 'next']
BLOCKS = ('h1', 'h2', 'p', 'tr', 'li', 'figure', 'section')


class Page(HTMLParser):
    """Text, elements, sections and styles of a report."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.sections = [], '', []
        self.style, self.open = '', []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == 'section':
            self.sections.append(dict(attrs)['id'])

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass
        self.text += '\n' * (tag in BLOCKS)

    def handle_data(self, data):
        if 'style' in self.open:
            self.style += data
            return
        self.text += data

    @property
    def words(self):
        return ' '.join(self.text.split())

    def every(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def page_of(folder):
    return Page(write_report(folder).read_text(encoding='utf-8'))


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp('model'))


@pytest.fixture(scope='module')
def page(folder):
    return page_of(folder)


def test_text_equals_the_stored_one(page, folder):
    lines = [' '.join(line.split()) for line in page.text.splitlines()]
    text = '\n'.join(filter(None, lines)).replace(folder.name, 'MODEL')
    assert text == golden('report.txt', text)


def test_names_are_escaped(page):
    assert TAG in page.text
    assert {'script', 'i>'}.isdisjoint(tag for tag, _ in page.tags)
    assert '10 <i>.jpg' in page.text
    assert 'no <image>' in page.text


def test_report_loads_and_runs_nothing(page):
    assert page.sections == SECTIONS + LAST
    links = [attrs['href'] for attrs in page.every('a')]
    assert links == [f'#{name}' for name in page.sections]
    loaded = [
        value
        for _, attrs in page.tags
        for name, value in attrs.items()
        if name in ('src', 'srcset', 'data', 'action', 'poster')
    ]
    assert loaded and all(x[:23] == 'data:image/jpeg;base64,' for x in loaded)
    assert not page.every('link')
    assert 'url(' not in page.style and '@import' not in page.style
    names = {name for _, attrs in page.tags for name in attrs}
    assert not any(name.startswith('on') for name in names)


def test_pictures_are_small_upright_and_described(page):
    pictures = page.every('img')
    assert len(pictures) == 17  # confused pairs and possible label errors
    assert all(picture['alt'] for picture in pictures)
    sizes = [(int(p['width']), int(p['height'])) for p in pictures]
    assert (20, 40) in sizes  # rotated by EXIF orientation
    _, _, content = pictures[0]['src'].partition(',')
    with Image.open(BytesIO(b64decode(content))) as image:
        assert image.size == sizes[0]


def test_report_has_no_accuracy_if_classes_have_one_photo(tmp_path):
    page = page_of(write_folder(tmp_path, tested=False, name='Roses'))
    assert 'Roses' in page.text.split(':')[0]
    assert page.sections == ['folder', 'classes', *LAST]
    assert 'None' not in page.text


FINETUNE_VAL = dict(
    n=50, accuracy=0.8, low=0.67, high=0.89, probe_accuracy=0.7
)
TRAINING = dict(epochs=20, seconds=131.0, finetune_val=FINETUNE_VAL)
TEST = dict(n=60, accuracy=0.85, low=0.74, high=0.92)
COST = facts()['cost']
WEIGHTS = dict(name='tiny', source='/home/ada/tiny.pth')
CONDITIONAL = [
    (
        dict(
            cost=dict(COST, ms=12, ms_full=10),
            group='plant 1',
            near_duplicate_counts=dict(ash=2, elm=2),
            counts=dict(zip(CLASSES, (300, 4, 3, 3), strict=True)),
        ),
        ('120%', 'one group', 'near-duplicates', '300 photos', '71.3')
        + ('--class-weights',),
    ),
    (
        dict(training=TRAINING, final='trained'),
        (
            '50 photos held out',
            '80.0%',
            'Before fine-tuning',
            '20 epochs, 2 min',
        ),
    ),
    (
        dict(training=TRAINING, test=TEST),
        ('discarded', '60 photos in val and test', '85.0%', '70.0%'),
    ),
    (
        dict(training=dict(TRAINING, finetune_val=None), final='trained'),
        ('was not measured',),
    ),
]


def test_report_advises_on_turned_photos_unless_trained_on_them(
    page, tmp_path
):
    call = dict(photos=None, any_direction=True)
    trained = page_of(write_folder(tmp_path, call=call)).words
    for words, is_advised in ((page.words, True), (trained, False)):
        assert ('--any-direction' in words) is is_advised
        assert ('also trained on turned photos' in words) is not is_advised


@pytest.mark.parametrize('changes, texts', CONDITIONAL)
def test_report_has_a_fact_only_if_it_applies(changes, texts, page, tmp_path):
    folder = write_folder(tmp_path, learning_curve=[], **changes)
    words = page_of(folder).words
    assert [x for x in texts if x not in words or x in page.words] == []


@pytest.mark.parametrize('changes', [changes for changes, _ in CONDITIONAL])
def test_report_has_the_lines_of_the_screen(changes, tmp_path):
    write_folder(tmp_path, learning_curve=[], **changes)
    words = page_of(tmp_path).words.lower()
    record = FitFolder(tmp_path).read_complete()
    lines = [*result_lines(record), *near_duplicate_lines(record)]
    assert len(lines) > 5
    assert [x for x in lines if x[11:].lower() not in words] == []


def test_headline_is_the_accuracy_of_the_saved_model(tmp_path):
    page = page_of(write_folder(tmp_path, training=TRAINING, final='trained'))
    start = page.words.index('80.0%')
    assert start < page.words.index('Before fine-tuning') < start + 900
    assert page.words.index('72.7%') > start


def test_report_has_no_latency_if_fit_was_interrupted(tmp_path):
    names = 'gmacs', 'gmacs_full', 'params'
    cost = {name: COST[name] for name in names}
    words = page_of(write_folder(tmp_path, cost=cost)).words
    assert '0.482 GMACs' in words and ' ms' not in words


def test_report_names_no_folder_of_the_user(tmp_path):
    folder = write_folder(tmp_path, weights=WEIGHTS)
    text = write_report(folder).read_text()
    assert str(tmp_path) not in text and '/home/' not in text


def test_label_errors_are_confident_contradictions(page):
    doubtful = page.text.index('Possible label errors\n')
    errors = page.text.index('Misclassified photos\n', doubtful)
    assert '(95%)' in page.text[doubtful:errors]
    assert '(70%)' in page.text[errors:]


def test_label_errors_are_all_counted_if_some_are_shown(folder, monkeypatch):
    monkeypatch.setattr(report, 'SURE', 0.4)
    monkeypatch.setattr(report, 'MAX_WRONG', 2)
    words = page_of(folder).words
    assert 'For 3 photos' in words and 'Shown are the 2' in words


def test_report_has_no_pictures_if_photos_are_gone(tmp_path):
    write_folder(tmp_path)
    for path in (tmp_path / 'photos').iterdir():
        path.unlink()
    table = tmp_path / 'photographs.csv'
    # a file name in another encoding than UTF-8
    table.write_bytes(table.read_bytes().replace(b'/6 <i>', b'/6 \xff'))
    page = page_of(tmp_path)
    assert not page.every('img')
    assert page.words.count('cannot be shown') == 17
    assert '6 ?.jpg' in page.text


def test_report_begins_with_days_that_coincide_with_classes(tmp_path):
    day = dict(
        kind='day',
        number=2,
        single={CLASSES[1]: '2023-07-14'},
        coinciding=[CLASSES[1]],
        classes_per_value=[1, 2],
    )
    page = page_of(write_folder(tmp_path, spreads=[day]))
    start = page.words.index('2023-07-14 only')
    assert start < page.words.index('72.7%')
    assert 'on the same days only: 72.7%' in page.words.lower()
    assert 'Of 100 new photos' not in page.words
