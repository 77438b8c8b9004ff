# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Preprocessing as operators at the beginning of an ONNX graph.

With them, a program in any language passes the pixels of a photo, and gets
the logits of the same resized, cropped and normalized image.
"""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.config import Config
from torch import Tensor, nn

from mmclca.datasets.batches import Preparation
from mmclca.errors import Error
from mmclca.models import with_nearest
from mmclca.utils.extras import require

from .onnx_runtime import load_onnx
from .preprocessing import Preprocessing
from .source import ExportSource

SIZES = (301, 402), (90, 70)  # height and width of the checked photos
# for scores: OpenCV rounds its coefficients to 11 bits, which changes them
TOLERANCE = 0.01

PHOTO = 'photo'  # name of the input
# the cubic filters of both libraries differ
MODES = {
    ('pillow', 'bilinear'): 'mode="linear"',
    ('pillow', 'bicubic'): 'mode="cubic", cubic_coeff_a=-0.5',
    ('cv2', 'bilinear'): 'mode="linear"',
    ('cv2', 'bicubic'): 'mode="cubic", cubic_coeff_a=-0.75',
}
# Operators in ONNX's text format, from a to b, both (1, 3, H, W), uint8.
BEGIN = """
{a}_chw = Transpose <perm = [2, 0, 1]> ({a})
{a}_axis = Constant <value_ints = [0]> ()
{b} = Unsqueeze({a}_chw, {a}_axis)"""
FIXED = """
{a}_size = Constant <value_ints = [1, 3, {height}, {width}]> ()"""
SHORT_EDGE = """
{a}_sides = Shape <start = 2> ({a})
{a}_scale = Constant <value_ints = [{scale}]> ()
{a}_scaled = Mul({a}_sides, {a}_scale)
{a}_short = ReduceMin({a}_sides)
{a}_new = Div({a}_scaled, {a}_short)
{a}_first = Constant <value_ints = [1, 3]> ()
{a}_size = Concat <axis = 0> ({a}_first, {a}_new)"""
# Pillow widens the filter when it shrinks an image, and ends it at the border
PILLOW = """
{b} = Resize <{mode}, antialias=1, exclude_outside=1> ({a}, , , {a}_size)"""
CV2 = """
{a}_float = Cast <to = 1> ({a})
{a}_resized = Resize <{mode}> ({a}_float, , , {a}_size)
{a}_round = Round({a}_resized)
{a}_least = Constant <value_float = 0.0> ()
{a}_most = Constant <value_float = 255.0> ()
{a}_clipped = Clip({a}_round, {a}_least, {a}_most)
{b} = Cast <to = 2> ({a}_clipped)"""
CROP = """
{a}_sides = Shape <start = 2> ({a})
{a}_crop = Constant <value_ints = [{height}, {width}]> ()
{a}_rest = Sub({a}_sides, {a}_crop)
{a}_float = Cast <to = 1> ({a}_rest)
{a}_half = Constant <value_float = 0.5> ()
{a}_middle = Mul({a}_float, {a}_half)
{a}_round = Round({a}_middle)
{a}_first = Cast <to = 7> ({a}_round)
{a}_zero = Constant <value_ints = [0]> ()
{a}_start = Max({a}_first, {a}_zero)
{a}_end = Add({a}_start, {a}_crop)
{a}_axes = Constant <value_ints = [2, 3]> ()
{b} = Slice({a}, {a}_start, {a}_end, {a}_axes)"""
END = """
{a}_order = Constant <value_ints = {order}> ()
{a}_channels = Gather <axis = 1> ({a}, {a}_order)
{a}_float = Cast <to = 1> ({a}_channels)
{a}_mean = Constant <value = float[1, 3, 1, 1] {{{mean}}}> ()
{a}_std = Constant <value = float[1, 3, 1, 1] {{{std}}}> ()
{a}_centered = Sub({a}_float, {a}_mean)
{b} = Div({a}_centered, {a}_std)"""


def add_photo_input(source: ExportSource, *files: Path) -> None:
    """Replace the input of ONNX files by a photo; check the first file.

    Further files are quantized, with different scores.
    """
    for file in files:
        add_preprocessing(file, source.preprocessing)
    check_photo(source.model, files[0], source.config)


def add_preprocessing(path: Path, preprocessing: Preprocessing) -> None:
    """Replace the input of an ONNX file by the pixels of one photo.

    The new input ``photo`` is an RGB image (H, W, 3) of any size, uint8.
    Resized pixels equal the result of Pillow and OpenCV except for rounding.

    Args:
        path (Path): ONNX file whose input is normalized images; changed in
            place.
        preprocessing (Preprocessing): The steps.

    Raises:
        Error: If ONNX lacks an operator for a step.
    """
    require('onnx', extra='deploy')
    import onnx

    file = onnx.load(path)
    graph = _write_graph(preprocessing, file.graph.input[0].name)
    added, nodes = onnx.parser.parse_graph(graph), list(file.graph.node)
    for field in ('input', 'node'):
        file.graph.ClearField(field)
    file.graph.input.extend(added.input)
    file.graph.node.extend([*added.node, *nodes])
    onnx.save(file, path)


def _write_graph(preprocessing: Preprocessing, images: str) -> str:
    """Write the graph from a photo to normalized images as text."""
    mean, std = (
        ', '.join(map(str, x)) for x in (preprocessing.mean, preprocessing.std)
    )
    order = [0, 1, 2] if preprocessing.channel_order == 'RGB' else [2, 1, 0]
    parts = [(BEGIN, {})]
    parts += [_write_operators(step) for step in preprocessing.steps]
    parts.append((END, dict(order=order, mean=mean, std=std)))
    names = [PHOTO, *(f'photo_{i}' for i, _ in enumerate(parts[1:])), images]
    lines = [
        template.format(a=names[i], b=names[i + 1], **values)
        for i, (template, values) in enumerate(parts)
    ]
    head = f'photo (uint8[height, width, 3] {PHOTO}) => ({images})'
    return f'{head} {{{"".join(lines)}\n}}'


def _write_operators(step: dict) -> tuple[str, dict]:
    """Return the operators of a step as a template, and its values."""
    if step['type'] == 'CenterCrop':
        return CROP, step
    backend, interpolation = step['backend'], step['interpolation']
    if (backend, interpolation) not in MODES:
        supported = ', '.join(' '.join(names) for names in MODES)
        raise Error(
            f'ONNX has no {backend} {interpolation} resizing (it has '
            f"{supported}): set `input` to 'batch', and resize photos before"
        )
    size = FIXED if step['type'] == 'Resize' else SHORT_EDGE
    resize = PILLOW if backend == 'pillow' else CV2
    return size + resize, dict(step, mode=MODES[backend, interpolation])


@torch.inference_mode()
def check_photo(model: nn.Module, path: Path, config: Config) -> float:
    """Compare an ONNX file that takes photos with PyTorch.

    Args:
        model (nn.Module): Classifier in evaluation mode on the CPU.
        path (Path): File changed by :func:`add_preprocessing`.
        config (Config): Config with a ``test_dataloader``.

    Returns:
        float: Largest absolute difference between scores, 0 to 1.

    Raises:
        Error: If it is above 0.01.
    """
    exported, prepare, largest = load_onnx(path), Preparation(config), 0.0
    for size in SIZES:
        photo = draw_noise(size)
        packed: Any = prepare(photo.flip(2).numpy())
        data = model.data_preprocessor(dict(inputs=[packed['inputs']]))
        expected = join_scores(with_nearest(model)(data['inputs']))
        difference = join_scores(exported(photo)) - expected
        largest = max(largest, difference.abs().max().item())
    if not largest <= TOLERANCE:
        raise Error(
            f'not exported: scores differ by {largest:.2g} from PyTorch, '
            f"allowed is {TOLERANCE:g}; set `input` to 'batch'"
        )
    return largest


def draw_noise(size: tuple[int, int]) -> Tensor:
    """Draw smooth random colors, (H, W, 3), uint8."""
    generator = torch.Generator().manual_seed(0)
    colors = torch.rand(1, 3, 9, 7, generator=generator)
    smooth = F.interpolate(255 * colors, size, mode='bilinear')
    return smooth[0].permute(1, 2, 0).round().byte().contiguous()


def join_scores(outputs: Tensor | tuple[Tensor, Tensor]) -> Tensor:
    """Join scores (1, classes) and ``nearest`` (1,), if any."""
    if isinstance(outputs, tuple):
        logits, nearest = outputs
        return torch.column_stack([logits.softmax(1), nearest])
    return outputs.softmax(1)
