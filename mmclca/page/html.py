# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Results as pieces of HTML that need nothing from elsewhere."""

import base64
from html import escape

import cv2
import numpy as np

from mmclca.apis.output import ANSWER
from mmclca.visualization.survivors import LOOKS, MIXED, NONE

from . import strings
from .prediction import Prediction, Stage
from .speed import Speed


def note(text: str) -> str:
    """A line of small print."""
    return f'<p class="note">{escape(text)}</p>'


def problem(text: str) -> str:
    """What went wrong, read out by screen readers."""
    return f'<div class="problem" role="alert">{escape(text)}</div>'


def nothing_yet() -> tuple[str, str, str]:
    """The three results before there is a leaf."""
    waiting = note(strings.WAITING)
    return (
        _titled(strings.CLASSES, waiting),
        _titled(strings.SURVIVORS, waiting),
        costs(strings.GMACS),
    )


def _titled(title: str, body: str) -> str:
    return f'<h3>{title}</h3>{body}'


def classes(answer: list, best: list[dict]) -> str:
    """The best classes with bars, and the row of a table of predictions.

    Args:
        answer (list): Of :func:`mmclca.apis.output.answer_cells`.
        best (list[dict]): ``name`` and ``score`` of each, best first.
    """
    titles = ''.join(f'<th>{name}</th>' for name in ANSWER)
    cells = ''.join(f'<td>{escape(str(cell))}</td>' for cell in answer)
    table = f'<table><tr>{titles}</tr><tr>{cells}</tr></table>'
    rows = [
        f'<div class="class"><span>{escape(one["name"])}</span>'
        f'{_bar(one["score"])}'
        f'<span class="number">{100 * one["score"]:.1f} %</span></div>'
        for one in best
    ]
    return _titled(strings.CLASSES, ''.join(rows) + table)


def survivors(prediction: Prediction) -> str:
    """The leaf and what is left of it after each step, with a legend."""
    seen, most = prediction.seen, prediction.tokens
    squares = f'{prediction.num_patches} squares'
    figures = _figure(seen, 'What the model sees', squares, most, most)
    for number, stage in enumerate(prediction.stages, start=1):
        title, left = f'After step {number}', _left(stage)
        figures += _figure(stage.picture, title, left, stage.tokens, most)
    legend = _legend(prediction.stages) + note(strings.TOKENS)
    body = f'<div class="steps">{figures}</div>{legend}'
    return _titled(strings.SURVIVORS, body)


def _left(stage: Stage) -> str:
    if not stage.kinds:
        return 'all squares mixed'
    return f'{100 * stage.share:.0f} % kept as they are'


def _figure(
    image: np.ndarray, title: str, text: str, tokens: int, most: int
) -> str:
    title, text = escape(title), escape(text)
    return (
        f'<figure><img src="{_data(image)}" alt="{title}: {text}">'
        f'<figcaption><b>{title}</b><br>{text}<br>{tokens} tokens'
        f'{_bar(tokens / most)}</figcaption></figure>'
    )


def _bar(share: float) -> str:
    width = f'width:{100 * share:.1f}%'
    return f'<span class="track"><span style="{width}"></span></span>'


def _data(image: np.ndarray) -> str:
    """An RGB image as an address that holds it."""
    _, content = cv2.imencode('.png', image[..., ::-1])
    return f'data:image/png;base64,{base64.b64encode(content).decode()}'


def _legend(stages: list[Stage]) -> str:
    found = {kind for stage in stages for kind in stage.kinds}
    entries = ''
    for kind, text in strings.LOOKS.items():
        if kind in found:
            fill, edge = LOOKS[kind].fill, LOOKS[kind].edge
            # a dark page hides edges
            entries += _swatch(text, 'white' if fill == NONE else fill, edge)
    if any(not stage.kinds for stage in stages):
        entries += _swatch(strings.MIXED, MIXED.fill, NONE)
    return f'<p class="legend">{entries}</p>'


def _swatch(text: str, fill: str, edge: str) -> str:
    return (
        f'<span class="entry"><span class="swatch" style="background:{fill};'
        f'border-color:{edge}"></span>{escape(text)}</span>'
    )


def costs(text: str) -> str:
    """A line in place of the cost of a leaf."""
    return _titled(strings.COSTS, note(text))


def compared(here: Speed, plain: Speed, name: str) -> str:
    """The cost of one leaf beside that of the model with all squares.

    Args:
        here (Speed): Of the model.
        plain (Speed): Of the model that keeps all squares.
        name (str): What to call the first one.
    """
    names = (escape(name), 'all squares kept')
    gmacs = here.gmacs, plain.gmacs
    times = here.milliseconds, plain.milliseconds
    drawn = _pair('Computing', '{:.3f} GMACs', names, gmacs)
    drawn += _pair('Time on this computer', '{:.1f} ms', names, times)
    slower = strings.NOT_FASTER if times[0] >= times[1] else ''
    text = note(f'{strings.GMACS} {slower}')
    return _titled(strings.COSTS, f'<div class="costs">{drawn}</div>{text}')


def _pair(title: str, form: str, names, values) -> str:
    lines = [
        f'<div class="cost"><span>{name}</span>{_bar(value / max(values))}'
        f'<span class="number">{form.format(value)}</span></div>'
        for name, value in zip(names, values, strict=True)
    ]
    return f'<div><b>{title}</b>{"".join(lines)}</div>'
