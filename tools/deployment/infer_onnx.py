# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classify photos with an exported ONNX model, without PyTorch.

``python infer_onnx.py MODEL.onnx IMAGES``. This script stands alone: it needs
``pip install onnxruntime numpy pillow opencv-python-headless`` and neither
torch nor mmclca.
"""

import argparse
import csv
import json
import math
import os
import re
import sys
from base64 import b64decode
from collections import Counter
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
from PIL import Image, ImageOps

READABLE = ('.png', '.jpg', '.jpeg', '.jpe', '.jfif', '.bmp', '.pgm', '.ppm')
READABLE += ('.tif', '.tiff', '.webp')
# the last ones are reported as not read
SUFFIXES = (*READABLE, '.gif', '.avif', '.heic', '.heif')
FORMATS = ('JPEG', 'PNG', 'TIFF', 'WEBP', 'BMP', 'PPM')
MAX_PIXELS = Image.MAX_IMAGE_PIXELS = 200_000_000
MAX_DECODED = 3 * MAX_PIXELS  # bytes
DEEP = ('I', 'I;16', 'I;16L', 'I;16B', 'I;16N')  # 16-bit modes
SIGNS = ('=', '+', '-', '@', '\t', '\r')  # formula prefixes in spreadsheets
CONTROLS = re.compile(
    '[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]'
)
ANSWER = ('result', 'confidence')
ANSWER += ('pred_class', 'pred_score', 'known', 'known_score')
SURE = ('sure_answer', 'sure_set')  # with --sure
BETWEEN = ' | '  # between the classes of a set
SCORES = ('max_softmax', 'energy', 'nearest')
NEEDED = ('preparation', 'classes', 'threshold')
BACKENDS = ('cv2', 'pillow')
SHOWN = 0.001  # minimum score to print a further class
LARGEST = 10_000  # maximum side after resizing, in pixels
PILLOW = Image.Resampling
OPENCV = dict(
    nearest=cv2.INTER_NEAREST,
    bilinear=cv2.INTER_LINEAR,
    bicubic=cv2.INTER_CUBIC,
    area=cv2.INTER_AREA,
    lanczos=cv2.INTER_LANCZOS4,
)


def parse_args():
    parser = argparse.ArgumentParser(
        description='Classify photos with an exported ONNX model. '
        'Results go to stdout, unreadable files to stderr'
    )
    parser.add_argument('model', help='ONNX file written by export.py')
    parser.add_argument(
        'images', nargs='+', help='image files, or folders with subfolders'
    )
    parser.add_argument(
        '--topk',
        type=int,
        default=5,
        help='classes per photo (default: %(default)s)',
    )
    parser.add_argument(
        '--threads',
        type=int,
        default=0,
        help='CPU threads; 0: one per core (default: %(default)s)',
    )
    parser.add_argument(
        '--sure',
        type=int,
        metavar='LEVEL',
        choices=range(50, 100),
        help='prediction sets that contain the class for LEVEL%% of photos, '
        '50 to 99',
    )
    parser.add_argument(
        '--among',
        type=Path,
        metavar='FILE',
        help='file with the classes that can occur here, one name per line',
    )
    parser.add_argument('--out', type=Path, help='results file: .csv')
    args = parser.parse_args()
    if args.topk < 1 or args.threads < 0:
        parser.error('--topk must be at least 1, --threads at least 0')
    if args.out and args.out.suffix.lower() != '.csv':
        parser.error(printable(f'--out {args.out}: expected a .csv file'))
    if not Path(args.model).is_file():
        parser.error(printable(f'{args.model} not found: check the path'))
    try:  # before classifying
        if args.out:
            args.out.parent.mkdir(parents=True, exist_ok=True)
            args.out.open('a').close()
    except OSError as error:
        parser.error(printable(f'--out {args.out}: {error.strerror}'))
    return args


def refuse(message):
    """Print an error in one line and exit with code 2."""
    line = printable(f'{Path(__file__).name}: error: {message}')
    print(line, file=sys.stderr)
    sys.exit(2)


def find_images(paths):
    """Return files, and the images in folders; report skipped files."""
    images = []
    for path in map(Path, paths):
        if not path.is_dir():
            images.append(path)
            continue
        skipped = Counter()
        for file in sorted(path.rglob('*')):
            suffix = file.suffix.lower()
            if not is_visible_file(file, path):
                continue
            if suffix in SUFFIXES:
                images.append(file)
            else:
                skipped[suffix or 'no ending'] += 1
        if skipped:
            counts = ', '.join(f'{n} {name}' for name, n in skipped.items())
            line = f'Skipped {skipped.total()} other files in {path}: {counts}'
            print(printable(line), file=sys.stderr)
    return images


def is_visible_file(path, folder):
    """Return whether a path is a file without hidden parts in a folder."""
    parts = path.relative_to(folder).parts
    is_hidden = any(part[0] == '.' or part == '__MACOSX' for part in parts)
    return not is_hidden and path.is_file()


class Classifier:
    """An exported model with its preprocessing and class names.

    Args:
        path (str): The file.
        threads (int): CPU threads; 0: one per core.
    """

    def __init__(self, path, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        try:
            self.session = onnxruntime.InferenceSession(
                path, options, providers=['CPUExecutionProvider']
            )
            metadata = self.session.get_modelmeta().custom_metadata_map
        except Exception as error:  # base class of onnxruntime's errors
            refuse(f'{path} is not a readable ONNX file: {error}')
        missing = [name for name in NEEDED if name not in metadata]
        if missing:
            refuse(
                f'{path} lacks the metadata {" and ".join(missing)}: use a '
                'file written by tools/deployment/export.py'
            )
        entry = self.session.get_inputs()[0]
        self.input, self.takes_photo = entry.name, 'uint8' in entry.type
        self.level = self.limit = None
        try:
            self.classes = json.loads(metadata['classes'])
            self.preparation = json.loads(metadata['preparation'])
            self.threshold = json.loads(metadata['threshold'])
            self.sure = json.loads(metadata.get('sure', 'null'))
            check_preparation(**self.preparation)
            self.kept = np.arange(len(self.classes))
            for shape in ((16, 160, 3), (160, 16, 3)):
                self._check(np.zeros(shape, np.uint8))
        except Exception as error:  # damaged metadata may raise anything
            name = type(error).__name__
            refuse(f'{path} has damaged metadata: {name}: {error}')

    def _check(self, image):
        """Classify a test image, and check classes and threshold."""
        names = self.classes
        if not isinstance(names, list) or {*map(type, names)} != {str}:
            raise ValueError('classes is not a list of names')
        logits, *nearest = self._run(image)
        if logits.shape != (1, len(names)):
            raise ValueError(
                f'{len(names)} classes for {logits.shape[-1]} outputs'
            )
        self._compare(0, 0, *(scores[0] for scores in nearest))
        limit = self.threshold and self.threshold['threshold']
        if limit is not None and not np.isfinite(limit):
            raise ValueError(f'threshold={limit}')

    def __call__(self, image, top):
        """Classify a decoded image and return its CSV cells.

        The columns ``ANSWER``, ``SURE`` with a guarantee, then ``label``,
        ``name`` and ``score`` per class, best first. For an unknown photo,
        ``result`` is 'unknown' and ``confidence`` 0: sorted tables begin with
        it.
        """
        logits, *nearest = (output[0] for output in self._run(image))
        if not np.isfinite(logits).all():
            refuse('scores are not finite: the weights are damaged')
        energy = logits.max() + np.log(np.exp(logits - logits.max()).sum())
        scores = np.exp(logits - energy)
        is_known, known_score = self._compare(scores.max(), energy, *nearest)
        scores = np.maximum(scores[self.kept], 1e-30)
        scores /= scores.sum()  # 1 unless classes are left out
        order = (-scores).argsort(kind='stable')
        cells = []
        for i in order[:top].tolist():
            label = int(self.kept[i])
            cells += [label, self.classes[label], round(float(scores[i]), 6)]
        best = cells[1:3]
        result = ['unknown', 0] if is_known == 'no' else best
        sure = []
        if self.level:
            is_sure = scores[order] >= self.limit * scores.max()
            names = [self.classes[i] for i in self.kept[order[is_sure]]]
            sure = [self._name_set(names), BETWEEN.join(names)]
        return [*result, *best, is_known, known_score, *sure, *cells]

    def restrict(self, path):
        """Keep the classes in a file, one name per line."""
        try:
            lines = path.read_text('utf-8-sig').splitlines()
        except (OSError, UnicodeDecodeError) as error:
            refuse(f'--among {path}: {error}')
        names = {*filter(None, map(str.strip, lines))}
        if unknown := sorted(names - {*self.classes}):
            refuse(f'--among {path}: the model has no class {unknown[0]!r}')
        if len(names) < 2:
            refuse(f'--among {path}: list at least two classes, one per line')
        labels = [i for i, name in enumerate(self.classes) if name in names]
        self.kept = np.array(labels)

    def guarantee(self, level):
        """Calibrate prediction sets as ``predict`` of mmclca does.

        Args:
            level (int): Share of photos whose set has their class, in percent.
        """
        if self.sure is None:
            refuse(
                '--sure: the file stores nothing for a guarantee; export '
                'a model folder that fit has written'
            )
        try:
            ratios, groups = read_ratios(self.sure, self.kept)
        except Exception as error:  # damaged metadata may raise anything
            refuse(f'damaged metadata: {type(error).__name__}: {error}')
        unit, needed = self.sure['unit'], math.ceil(level / (100 - level))
        _, inverse, counts = np.unique(
            groups, return_inverse=True, return_counts=True
        )
        if len(counts) < needed:
            refuse(
                f'{level}% cannot be guaranteed: at least {needed} {unit}s '
                f'are needed, found {len(counts)}'
            )
        # groups have equal weights; the photo to classify is a further one
        weights = 1 / ((1 + len(counts)) * counts[inverse])
        order = [i for i in (-ratios).argsort() if not np.isnan(ratios[i])]
        covered = weights[order].cumsum()
        position = int((covered < level / 100 - 1e-9).sum())
        if position == len(order):
            refuse(
                f'{level}% cannot be guaranteed: too many classes have one '
                f'{unit}, which cannot be tested'
            )
        self.level, self.limit = level, ratios[order[position]]

    def _name_set(self, names):
        """Return the only class or coarse class, or all classes."""
        coarse = {self.sure['coarse_classes'].get(name) for name in names}
        if len(names) > 1 and len(coarse) == 1 and None not in coarse:
            return coarse.pop()
        return BETWEEN.join(names)

    def _run(self, image):
        """Return the outputs for an image (H, W, 3), 8-bit, BGR."""
        if self.takes_photo:  # the graph resizes, crops and normalizes
            inputs = np.ascontiguousarray(image[..., ::-1])
        else:
            inputs = prepare(image, **self.preparation)[None]
        return self.session.run(None, {self.input: inputs})

    def _compare(self, *scores):
        """Return the cells ``known`` and ``known_score``, empty without a
        threshold; only models by fit have the third score, ``nearest``."""
        if self.threshold is None:
            return '', ''
        score = float(scores[SCORES.index(self.threshold['score'])])
        is_known = 'yes' if score >= self.threshold['threshold'] else 'no'
        return is_known, round(score, 6)


def read_ratios(sure, kept):
    """Return the ratios (n,) and groups (n,) of stored photos.

    These have the classes ``kept``. A ratio is the probability of the class
    by the largest one, NaN if the photo was not tested.
    """
    labels, groups = np.array(sure['labels']), np.array(sure['groups'])
    numbers = np.frombuffer(b64decode(sure['probabilities']), '<f4')
    photos = np.isin(labels, kept)
    numbers = numbers.reshape(len(labels), -1)[photos][:, kept]
    numbers = np.maximum(numbers, np.float32(1e-30))
    positions = np.searchsorted(kept, labels[photos])
    ratios = numbers[np.arange(len(numbers)), positions] / numbers.max(1)
    return ratios, groups[photos]


def check_preparation(steps, channel_order, mean, std, size):
    """Refuse settings that would silently change the pixels."""
    if channel_order not in ('RGB', 'BGR'):
        raise ValueError(f'channel_order={channel_order!r} is not RGB or BGR')
    if len(mean) != 3 or len(std) != 3 or len(size) != 2:
        raise ValueError('mean and std need 3 numbers, size needs 2')
    if not all(std):
        raise ValueError(f'std={std} has a zero')
    if not np.isfinite([*mean, *std]).all():
        raise ValueError('mean or std is not a number')
    for step in steps:
        numbers = [x for x in step.values() if not isinstance(x, str)]
        if any(type(x) is not int or not 0 < x < LARGEST for x in numbers):
            raise ValueError(f'{step}: sides are integers below {LARGEST}')
        if step.get('backend', 'cv2') not in BACKENDS:
            raise ValueError(f'{step}: backend is not {" or ".join(BACKENDS)}')


def prepare(image, steps, channel_order, mean, std, size):
    """Return a decoded image (H, W, 3), 8-bit, BGR, as (3, H, W),
    normalized."""
    for step in steps:
        options = {key: step[key] for key in step if key != 'type'}
        image = STEPS[step['type']](image, **options)
    assert image.shape == (*size, 3), image.shape
    if channel_order == 'RGB':
        image = image[..., ::-1]
    image = image.transpose(2, 0, 1).astype(np.float32)
    mean, std = (np.float32(c).reshape(3, 1, 1) for c in (mean, std))
    return (image - mean) / std


def resize(image, width, height, backend, interpolation):
    size = width, height
    if backend == 'cv2':
        return cv2.resize(image, size, interpolation=OPENCV[interpolation])
    method = PILLOW[interpolation.upper()]
    return np.asarray(Image.fromarray(image).resize(size, method))


def resize_edge(image, scale, backend, interpolation):
    sides = image.shape[1::-1]
    width, height = (int(scale * side / min(sides)) for side in sides)
    return resize(image, width, height, backend, interpolation)


def center_crop(image, width, height):
    top = max(0, round((image.shape[0] - height) / 2))
    left = max(0, round((image.shape[1] - width) / 2))
    return image[top : top + height, left : left + width]


STEPS = dict(Resize=resize, ResizeEdge=resize_edge, CenterCrop=center_crop)


def read(path):
    """Return a decoded image, or None."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return None
        content = path.read_bytes()
        with Image.open(BytesIO(content), formats=FORMATS) as image:
            tags = image.tag_v2 if image.format == 'TIFF' else {}
            if tags and is_refused(tags):
                return None
            if decoded_bytes(image) > MAX_DECODED:
                return None
            if image.mode in DEEP:
                grey = np.asarray(ImageOps.exif_transpose(image))
                if grey.min() < 0 or grey.max() >= 2**16:
                    return None
                grey = to_8_bits(grey.astype(np.uint16))
                if tags.get(262) == 0:  # white is zero
                    grey = 255 - grey
                return cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR)
        content = np.frombuffer(content, np.uint8)
        flags = cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH
        return to_8_bits(cv2.imdecode(content, flags))
    except Exception:  # a decoder may raise anything
        return None


def is_refused(tags):
    """Return whether mmclca refuses a TIFF file: unknown color space, signed
    values, 16 bits in separate planes, or uncompressed YCbCr."""
    planes = tags.get(284) == 2 and max(tags.get(258, (1,))) > 8
    raw = tags.get(262) == 6 and tags.get(259, 1) == 1
    return 262 not in tags or 2 in tags.get(339, ()) or planes or raw


def decoded_bytes(image):
    """Estimate the memory of a decoded image in bytes, as mmclca does."""
    (width, height), channels = image.size, len(image.getbands())
    depth = 2 if ';16' in str([tile[3] for tile in image.tile[:1]]) else 1
    if image.format == 'TIFF':
        # width, height, tile sides, samples per pixel, bits per sample
        tags = image.tag_v2
        width, height = max(tags[256], tags.get(322, 0)), tags[257]
        height = max(height, tags.get(323, 0))
        channels = max(channels, tags.get(277, 1))
        depth = max(8, *tags.get(258, (8,))) / 8
    copies = 2 if 'progressive' in image.info else 1
    copies = 3 if image.format == 'WEBP' else copies
    return width * height * max(3, channels) * depth * copies


def to_8_bits(image):
    """Scale 16-bit images to 8 bits as mmclca does; None for other types."""
    if image is None or image.dtype == np.uint8:
        return image
    if image.dtype != np.uint16:
        return None
    bits = max(8, int(image.max()).bit_length())
    bits += bits % 2
    return (image >> (bits - 8)).astype(np.uint8)


def describe(path, row, level=None):
    """Describe an image by its best classes; flag an unknown one first.

    With a guaranteed ``level``, the answer of its set is the first.
    """
    _, _, _, _, is_known, known_score, *cells = row
    if level:
        answer, _, *cells = cells
    classes = [
        f'{name} {score:.1%}'
        for rank, (name, score) in enumerate(
            zip(cells[1::3], cells[2::3], strict=True)
        )
        if rank == 0 or score >= SHOWN
    ]
    if is_known == 'no':
        classes[0] = f'nearest: {classes[0]}'
        classes.insert(0, f'unknown? (score {known_score:.3f})')
    if level:
        classes.insert(0, f'{level}%: {answer}')
    return printable('  '.join([str(path), *classes]))


def to_cell(value):
    """Put a quote before a text if a spreadsheet would run it as a formula."""
    if isinstance(value, str) and value.lstrip("'").startswith(SIGNS):
        return f"'{value}"
    return value


def printable(line):
    """Escape the control characters of a line for the terminal."""
    return CONTROLS.sub(
        lambda match: match[0].encode('unicode_escape').decode(), line
    )


def write(path, rows, number, columns=ANSWER):
    """Write a CSV table with ``number`` classes per photo."""
    keys = ('label', 'name', 'score')
    named = [f'{key}_{rank + 1}' for rank in range(number) for key in keys]
    part = path.with_name(f'.{path.name}.{os.getpid()}')
    # Excel reads other letters than ASCII only after a byte order mark
    is_ascii = str(rows).isascii()
    encoding = 'utf-8' if is_ascii else 'utf-8-sig'
    try:
        with part.open(
            'w', newline='', encoding=encoding, errors='surrogateescape'
        ) as file:
            writer = csv.writer(file, lineterminator='\n')
            writer.writerow(['image', *columns, *named, 'error'])
            writer.writerows(map(to_cell, row) for row in rows)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)  # readers find the old or the complete file
    except OSError as error:
        name = Path(__file__).name
        sys.exit(f'{name}: error: cannot write {path}: {error.strerror}')
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def classify(classifier, image, top):
    """Return the CSV cells for an image, or None if the model refuses it."""
    try:
        return classifier(image, top)
    except Exception:  # errors of onnxruntime have no base class of their own
        return None


def main():
    args = parse_args()
    paths = find_images(args.images)
    if not paths:
        refuse(
            f'no images in {" ".join(args.images)}: supported endings are '
            f'{" ".join(SUFFIXES)}'
        )
    classifier = Classifier(args.model, args.threads)
    columns = ANSWER
    if args.among:
        classifier.restrict(args.among)
    if args.sure:
        classifier.guarantee(args.sure)
        columns += SURE
    top = min(args.topk, len(classifier.kept))
    rows, unreadable = [], []
    try:
        for path in paths:
            image = read(path)
            row = image is not None and classify(classifier, image, top)
            if row:
                error = ''
                print(describe(path, row, args.sure), flush=True)
            else:
                unreadable.append(str(path))
                row, error = [''] * (len(columns) + 3 * top), 'not read'
            rows.append([str(path), *row, error])
    finally:
        if args.out and rows:
            write(args.out, rows, top, columns)
    print(summary(rows, len(unreadable), args.out))
    if unreadable:
        sys.exit('\n  '.join(['Unreadable:', *map(printable, unreadable)]))


def summary(rows, unreadable, file):
    """Count the results in one line."""
    unknown = sum(row[1] == 'unknown' and row[5] == 'no' for row in rows)
    line = f'Classified {len(rows) - unreadable} of {len(rows)} photos'
    line += f'; {unknown} flagged as unknown; {unreadable} unreadable.'
    return line + printable(f' Saved {file}' if file else '')


if __name__ == '__main__':
    try:
        main()
    except KeyboardInterrupt:
        print(f'\n{Path(__file__).name}: interrupted', file=sys.stderr)
        sys.exit(130)
