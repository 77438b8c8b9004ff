# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Comparison of an 8-bit ONNX file with its 32-bit original."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.features import extract_outputs
from mmclca.checkpoints.gate.photo_table import PhotoFiles, PhotoRow
from mmclca.checkpoints.model_folder import ModelFolder, is_fitted
from mmclca.deployment import QuantizedComparison, load_onnx
from mmclca.languages import Note

from .steps import Setting, interleaved_seconds

BATCH, ROUNDS = 32, 20
ACCURACY, AGREEMENT = Note('export.accuracy'), Note('export.agreement')


def compare_quantized(
    inferencer: TokenReductionInferencer,
    float32_file: Path,
    int8_file: Path,
    size: tuple[int, int],
    checkpoint: str,
    photos: str | Path | None = None,
) -> QuantizedComparison:
    """Compare latency and predictions of an 8-bit and a 32-bit file.

    Args:
        inferencer (TokenReductionInferencer): The model, on the CPU.
        float32_file (Path): ONNX file in 32 bits.
        int8_file (Path): ONNX file in 8 bits.
        size (tuple[int, int]): Image height and width.
        checkpoint (str): Path of the checkpoint. A folder written by ``fit``
            lists the photos to compare on.
        photos (str | Path, optional): Folder of photos that may have changed
            since the fit. Defaults to None: changed photos outside the model
            folder are skipped.

    Returns:
        QuantizedComparison: Latency, and accuracy or agreement, in words.
    """
    threads = torch.get_num_threads()
    setting = Setting(threads=threads, batch=1)
    files = {'8': load_onnx(int8_file, threads)}
    files['32'] = load_onnx(float32_file, threads)
    images = setting.images(size)
    steps = {name: partial(run, images) for name, run in files.items()}
    seconds = interleaved_seconds(steps, setting, ROUNDS)
    times = [
        f'{name}-bit {1e3 * min(passes):.3g} ms'
        for name, passes in seconds.items()
    ]
    plural = 's' * (threads > 1)
    latency = f'{", ".join(times)} per photo ({threads} thread{plural})'
    if not is_fitted(checkpoint):
        return QuantizedComparison.from_notes(
            latency, ACCURACY, Note('export.no_folder')
        )
    rows = list_photos(checkpoint)
    folders = [Path(folder) for folder in (checkpoint, photos) if folder]
    photo_files = PhotoFiles.from_rows(rows, *folders)
    rows = [row for row in rows if photo_files.may_show(row.path)]
    if not rows:
        return QuantizedComparison.from_notes(
            latency, ACCURACY, Note('export.missing')
        )
    label, agreement = _compare_predictions(
        inferencer, rows, [files['8'], files['32']]
    )
    return QuantizedComparison.from_notes(latency, label, agreement)


def list_photos(folder: str) -> list[PhotoRow]:
    """Rows of the hold-out photos, or of the training photos without any."""
    photos = ModelFolder.open(folder).read_photos()
    held_out = [photo for photo in photos if photo.is_held_out]
    return held_out or [photo for photo in photos if photo.is_used]


def _compare_predictions(
    inferencer: TokenReductionInferencer,
    rows: list[PhotoRow],
    files: list[Callable],
) -> tuple[Note, Note]:
    """Return label and text on the accuracy, or on the agreement."""

    def both(images):
        outputs = [run(images) for run in files]
        # drop the unknown-class score if the file returns one
        logits = [x[0] if isinstance(x, tuple) else x for x in outputs]
        return torch.stack(logits, 1)

    paths = [row.path for row in rows]
    scores, unread = extract_outputs(inferencer, paths, both, BATCH)
    rows = [row for i, row in enumerate(rows) if i not in unread]
    if not rows:
        return ACCURACY, Note('export.unreadable')
    int8, float32 = scores.unflatten(1, (2, -1)).argmax(2).T.tolist()
    same = sum(map(int.__eq__, int8, float32))
    values = dict(number=str(len(rows)), share=f'{same / len(rows):.1%}')
    if rows[0].is_used:
        values['same'] = str(same)
        return AGREEMENT, Note('export.same', values)
    names = [inferencer.classes.index(row.label) for row in rows]
    right = [sum(map(int.__eq__, x, names)) for x in (int8, float32)]
    values |= dict(int8=str(right[0]), float32=str(right[1]))
    return ACCURACY, Note('export.right', values)
