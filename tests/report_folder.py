# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Small model folders, as written by ``fit``."""

import csv
import json

import numpy as np
from PIL import Image
from safetensors.numpy import save_file

TAG = '<script>alert("acer")</script>'  # a class name with markup
CLASSES = [TAG, 'Fagus & co', 'Quercus "robur"', 'Ulmus']
COUNTS = [4, 4, 3, 1]
COLUMNS = ['path', 'class', 'group', 'split', 'used', 'why_not']
COLUMNS += ['predicted', 'p_given', 'p_predicted']
# prediction and its probability per photo, '' and None if untested
PREDICTED = [0, 0, 0, 1, 1, 1, 0, 1, 2, 2, 1, '']
SURE = [0.9, 0.8, 0.6, 0.7, 0.9, 0.9, 0.95, 0.5, 0.6, 0.7, 0.5, None]


def draw(path, number):
    """Write a photo; the first one is rotated by its EXIF orientation."""
    noise = np.random.default_rng(number).integers(0, 255, (20, 40, 3))
    exif = Image.Exif()
    exif[0x0112] = 6 if number == 0 else 1
    path.parent.mkdir(exist_ok=True)
    Image.fromarray(noise.astype(np.uint8)).save(path, exif=exif)


def facts():
    """Return the content of fit.json."""
    recalls = [(0.75, 0.301, 0.954), (0.7375, 0.292, 0.95), (0.65, 0.2, 0.9)]
    recalls.append([None] * 3)
    names = ('n', 'recall', 'low', 'high')
    per_class = {
        name: dict(zip(names, (count, *found), strict=True))
        for name, count, found in zip(CLASSES, COUNTS, recalls, strict=True)
    }
    curve = [(1, 0.512, 0.26, 0.76), (2, 0.727, 0.434, 0.88)]
    names = ('photos', 'accuracy', 'low', 'high')
    return dict(
        version='1.0',
        source='photos',
        classes=CLASSES,
        counts=dict(zip(CLASSES, COUNTS, strict=True)),
        problems=[
            dict(kind='unreadable', cases=[['notes.jpg', 'no <image>']])
        ],
        weights=dict(name='deit_tiny', source='weights/deit_tiny.pth'),
        model=dict(
            method='EViT',
            keep_rate=0.25,
            layers=[0, 1, 2],
            out_type='average',
            img_size=224,
            depth=9,
        ),
        cost=dict(
            gmacs=0.482,
            gmacs_full=1.254,
            params=4_200_000,
            ms=9.8,
            ms_full=17.9,
            machine='a computer, 2 threads',
            runtime='ONNX Runtime',
            busy='',
        ),
        probe=dict(
            classifier='ridge',
            alpha=10.0,
            late_cls_weight=0.0,
            temperature=0.5,
            folds=3,
            repeats=5,
            accuracy=0.727,
            low=0.434,
            high=0.903,
            macro_recall=0.713,
            per_class=per_class,
            seconds=11.3,
        ),
        learning_curve=[dict(zip(names, p, strict=True)) for p in curve],
        near_duplicate_counts={},
        training=None,
        test=None,
        final='probe',
        threshold=dict(
            score='nearest',
            threshold=0.914,
            false_alarms=0.061,
            low=0.012,
            high=0.253,
        ),
        versions=dict(mmclca='1.0', torch='2.14'),
        date='2026-11-22T10:00:00+00:00',
        seconds=171.0,
    )


def probabilities():
    """Return class probabilities, equal for all but the prediction."""
    found = np.full((len(PREDICTED), len(CLASSES)), np.nan, np.float32)
    for row, predicted, sure in zip(found, PREDICTED, SURE, strict=True):
        if sure is not None:
            row[:] = (1 - sure) / (len(CLASSES) - 1)
            row[predicted] = sure
    return found


def untested(known):
    """Return facts for one photo per class."""
    nothing = dict.fromkeys(('recall', 'low', 'high'))
    per_class = {name: dict(nothing, n=1) for name in CLASSES}
    names = ('accuracy', 'low', 'high', 'macro_recall')
    probe = dict(known['probe'], folds=0, per_class=per_class)
    probe |= dict.fromkeys(names)
    return dict(known, probe=probe, learning_curve=[], threshold=None)


def write_folder(folder, tested=True, group='', **changes):
    """Write a model folder.

    Photos are ``tested`` or not, and in one ``group``; ``changes`` replace
    facts in fit.json.
    """
    known = facts() if tested else untested(facts())
    known['source'] = str(folder / 'photos')
    known['call'] = dict(photos=None, groups=group)
    (folder / 'fit.json').write_text(json.dumps(known | changes))
    labels = np.repeat(range(len(CLASSES)), COUNTS)
    found = probabilities()
    tensors = dict(probabilities=found, labels=labels)
    save_file(tensors, folder / 'cv_probabilities.safetensors')
    with (folder / 'photographs.csv').open('w', newline='') as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for n, label in enumerate(labels):
            path = folder / 'photos' / f'{n} <i>.jpg'
            draw(path, n)
            row = [path, CLASSES[label], group, '', True, '', '', '', '']
            if tested and SURE[n]:
                row[-3:] = CLASSES[PREDICTED[n]], found[n, label], SURE[n]
            table.writerow(row)
        gone = folder / 'photos/notes.jpg'
        table.writerow([gone, '', '', '', False, 'no image', '', '', ''])
    return folder
