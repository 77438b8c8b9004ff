# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Output of a fit: a few lines and a bar, and all else in a file."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from io import StringIO, TextIOBase
from pathlib import Path
from typing import TextIO

from mmengine.logging import MMLogger
from rich import get_console
from rich.console import Console
from rich.status import Status

from mmclca.evaluation.cost import count_config
from mmclca.evaluation.open_set import NEAREST
from mmclca.utils.messages import first_of, printable, say

from .model import Plan, accuracies_of, words
from .probing import best_probe
from .record import FitRecord


class Log(TextIOBase):
    """Take what libraries print, and know the screen.

    Within its context standard output, standard error and the loggers of
    mmengine write to it; bars of mmpretrain are drawn where there is a
    terminal. It keeps the text until :meth:`open` gives it a file, so that a
    call that is refused leaves none.
    """

    def __init__(self):
        self.file = StringIO()

    def __enter__(self) -> 'Log':
        self.screen, self.bars = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = self
        move_loggers(self.screen, self)
        if self.bars.isatty():
            get_console().file = self.bars
        return self

    def __exit__(self, *error) -> None:
        sys.stdout, sys.stderr = self.screen, self.bars
        move_loggers(self, self.screen)
        get_console().file = None  # standard output
        self.file.close()
        self.file = StringIO()  # of who still writes to it

    def open(self, path: Path) -> None:
        """Append what came so far, and all that comes, to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = self.file.getvalue()
        self.file = path.open('a', encoding='utf-8', errors='replace')
        self.file.write(text)

    def write(self, text: str) -> int:
        """Write to the file, or keep the text until there is one."""
        return self.file.write('\n'.join(map(printable, text.split('\n'))))

    def flush(self) -> None:
        """See ``io.TextIOBase``."""
        self.file.flush()

    def status(self, title: str) -> Status:
        """Show within a context, on a terminal, what is being done."""
        return Console(file=self.bars).status(title)

    def tell_user(self, *lines: str) -> None:
        """Show lines on the screen; they go to the file, too."""
        for file in (self.screen, self):
            say(*lines, file=file)


def move_loggers(before: TextIO, after: TextIO) -> None:
    """Have those of mmengine's loggers that write to one file write to
    another."""
    for logger in MMLogger._instance_dict.values():
        for handler in logger.handlers:
            if vars(handler).get('stream') is before:
                handler.setStream(after)


def start_lines(plan: Plan, record: FitRecord) -> list[str]:
    """Describe the photos, their classes and the weights."""
    counts, names = record.counts.values(), [*record.counts]
    shown = names[:3] + ['...'] + names[-2:] if len(names) > 6 else names
    low, high = min(counts), max(counts)
    each = f'{low}' if low == high else f'{low} to {high}'
    return [
        f'{sum(counts)} photographs of {len(counts)} classes ({each} a class)',
        f'  Classes  {", ".join(shown)}',
        *(f'  {line}' for line in record.problems),
        f'Weights: {plan.pretrained.words()}',
        *(f'  {note}' for note in plan.pretrained.notes),
    ]


def cost_line(plan: Plan, cost: dict) -> str:
    """Say what the model computes."""
    line = f'Model: {words(plan.variant)}, {cost["gmacs"]:.3g} GMACs'
    return line + _beside_whole(plan, f'{cost["gmacs_full"]:.3g}')


def time_line(plan: Plan, cost: dict) -> str:
    """Say how long a photograph takes, and where that was measured."""
    line = f'Time: {cost["ms"]:.3g} ms a photograph in {cost["runtime"]}'
    whole = _beside_whole(plan, f'{cost["ms_full"]:.3g}')
    return f'{line}{whole}{cost["busy"]}'


def _beside_whole(plan: Plan, full: str) -> str:
    reduced = plan.variant.out_type is not None
    return f' (the whole transformer: {full})' if reduced else ''


def probe_lines(record: FitRecord) -> Iterator[str]:
    """Say how good the probe is."""
    probe, seconds = record.probe, f'after {record.probe["seconds"]:.0f} s'
    yield f'Without training, {seconds}: {_accuracy(probe)}'
    if record.is_uneven and probe['accuracy'] is not None:
        line = f'  mean over classes: {probe["macro_recall"]:.1%}'
        if record.call['class_weights'] is None:
            line += '; --class-weights balanced lets classes count alike'
        yield line


def series_lines(record: FitRecord) -> Iterator[str]:
    """Warn of classes whose photographs look like one series."""
    if record.series:
        names = first_of(record.series, 3)
        yield (
            f'  {sum(record.series.values())} photographs of {names} show '
            'nearly the same as another of their class: the accuracy and its '
            'interval are too good. Keep a series together with --groups, or '
            'photograph other plants'
        )


def class_lines(had: FitRecord, record: FitRecord, name: str) -> Iterator[str]:
    """Say what was learned of a class, and what that does to all."""
    new, number = record.probe['per_class'][name], had.counts.get(name, 0)
    yield f'Classes: {len(record.classes)} ({len(had.classes)} before)'
    yield (
        f'{name}: {new["n"]} photographs ({number} before), '
        f'{_share(new["recall"])} right in folds; all classes: '
        f'{_share(record.probe["accuracy"])} ({_share(had.probe["accuracy"])} '
        'before)'
    )


def _share(value: float | None) -> str:
    return 'not known how many' if value is None else f'{value:.1%}'


def end_lines(
    record: FitRecord, folder: Path, gone: Sequence[str] = ()
) -> list[str]:
    """Say how good the model is, how sure that is, and what to type next."""
    place = shlex.quote(str(folder))
    program = shlex.quote(os.path.basename(sys.executable))
    again = f'of the model before: {program} -m mmclca export {place}'
    int8 = {name: ' --int8' * ('.int8.' in name) for name in gone}
    return [
        *(f'Removed {x} {again}{int8[x]} writes it anew' for x in gone),
        f'How good: {_accuracy(record.best)}',
        f'How sure: {_how_sure(record)}',
        f'Strangers: {_strangers(record.threshold)}',
        f'What next: {program} -m mmclca predict {place} NEW_PHOTOGRAPHS; '
        f'open {place}/report.html',
    ]


def explain_lines(plan: Plan, record: FitRecord) -> Iterator[str]:
    """Say why a model was chosen, and what the first would give."""
    if plan.variant.out_type is None:
        yield f'Why {words(plan.variant)}: others were not measured'
        return
    within = plan.call['budget'] or 'half of the whole transformer'
    yield f'Why {words(plan.variant)}: the first of these within {within}'
    for variant, accuracy in accuracies_of(plan.pretrained).items():
        is_chosen = words(variant) == words(plan.variant)
        chosen = '  <- this model' * is_chosen
        yield f'  {accuracy:.1f}%  {words(variant)}{chosen}'
    yield '  (mean of nine sets, three photographs a class; first: least risk)'
    best, found = best_probe(plan)
    gmacs = count_config(best.config.model).flops / 1e9
    share = float(found.accuracy.mean()) if found.independent else None
    yield (
        f'On these photographs: {words(best.variant)}, {gmacs:.3g} GMACs, '
        f'without training: {_share(share)}; this model, '
        f'{record.cost["gmacs"]:.3g} GMACs: '
        f'{_share(record.probe["accuracy"])}. --best takes the former'
    )


def _accuracy(found: dict) -> str:
    if found['accuracy'] is None:
        return 'accuracy not known, as no class has two photographs'
    return (
        f'{found["accuracy"]:.1%} right on photographs that it has not seen '
        f'({found["low"]:.1%} to {found["high"]:.1%})'
    )


def _strangers(found: dict) -> str:
    """Say how what is of no known class is told, and how often wrongly."""
    if found['score'] != NEAREST:
        return 'not told, as too few were tested or the model is of before'
    return (
        f'what is less alike than {found["threshold"]:.3f} to every '
        'photograph that it learned from is said to be not known; of those '
        f'that it has not seen, {found["false_alarms"]:.1%} '
        f'({found["low"]:.1%} to {found["high"]:.1%}) of known classes were'
    )


def _how_sure(record: FitRecord) -> str:
    found, probe = record.best, record.probe
    if found is not probe:
        where = 'in val and test' if record.held_out else 'held out'
        return (
            f'measured on {found["n"]} photographs {where}; 95 of 100 such '
            'intervals hold the truth'
        )
    if probe['accuracy'] is None:
        return 'give every class a second photograph, and it can be measured'
    classes = probe['per_class'].values()
    number = sum(one['n'] for one in classes if one['recall'] is not None)
    trained = '; the trained model itself was not measured'
    return (
        f'{number} photographs, each named by models that had not seen it '
        f'({probe["folds"]} folds, {probe["repeats"]} times), which learned '
        f'from {1 - 1 / probe["folds"]:.0%} of them; this one from all'
        f'{trained if record.final == "trained" else ""}'
    )
