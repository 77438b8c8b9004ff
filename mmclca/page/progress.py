# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Progress over all steps, and the time left."""

import time
from dataclasses import dataclass
from html import escape

from mmclca.fitting.log import Step
from mmclca.languages import text
from mmclca.utils.events import ProgressEvent, StepEvent

STEPS = [*Step]
# titles of bars within a step
FEATURES, SECOND_TRAINING = 'Features', 'Fine-tuning on all photos'
FIRST_TRAINING = 'Fine-tuning for the test'  # stands for its step
FOLDS, REPORT = 'Cross-validation', 'Writing the report'
# keys of their texts; others are shown as they are
PARTS = {
    'Checking photos': 'page.part.copies',
    'Near-duplicates': 'page.part.near_duplicates',
    'Shortcuts': 'page.part.shortcuts',
    FEATURES: 'page.part.features',
    FOLDS: 'page.part.folds',
    'Learning curve': 'page.part.curve',
    'Measuring the training speed': 'page.part.speed',
    FIRST_TRAINING: 'page.part.first_training',
    SECOND_TRAINING: 'page.part.second_training',
    REPORT: 'page.part.report',
    'Measuring latency': 'page.part.timing',
}
MIN_SHARE = 0.02  # of the work, before the rest can be estimated


@dataclass(frozen=True)
class Part:
    """Part with its own bar within a step.

    Args:
        step (Step): The step.
        seconds (float): Typical duration on two cores; only the relations
            between parts count.
    """

    step: Step
    seconds: float


def list_parts(photos: int, fine_tunes: bool) -> dict[str, Part]:
    """List parts by title, in their order.

    A bar with another title belongs to the part before it.

    Args:
        photos (int): How many photos.
        fine_tunes (bool): Whether the network will be fine-tuned.
    """
    epochs = 0.5 * photos * fine_tunes
    return {
        Step.CHECK.value: Part(Step.CHECK, 3 + 0.01 * photos),
        Step.FIRST_MODEL.value: Part(Step.FIRST_MODEL, 3),
        FEATURES: Part(Step.FIRST_MODEL, 0.07 * photos),
        FOLDS: Part(Step.FIRST_MODEL, 3 + 0.01 * photos),
        Step.FINE_TUNE.value: Part(Step.FINE_TUNE, 0.8 * epochs),
        SECOND_TRAINING: Part(Step.FINE_TUNE, epochs),
        REPORT: Part(Step.FIRST_MODEL, 3),
        Step.LATENCY.value: Part(Step.LATENCY, 12),
    }


class FitProgress:
    """Progress over all steps of a fit, which never goes back.

    Args:
        photos (int): How many photos. Defaults to 100.
        fine_tunes (bool): Whether the network will be fine-tuned. Defaults to
            False.

    Attributes:
        step (Step): Present step.
        share (float): Finished share of all steps, 0 to 1.
        title (str): Present part of the step.
    """

    def __init__(self, photos: int = 100, fine_tunes: bool = False) -> None:
        self.step, self.share, self.title = STEPS[0], 0.0, ''
        self._parts = list_parts(photos, fine_tunes)
        self._part, self._start = Step.CHECK.value, time.monotonic()

    def update(self, event: StepEvent | ProgressEvent) -> None:
        """Take the progress from an event."""
        share = 0.0
        if isinstance(event, StepEvent):
            self.step, self.title = Step(event.step), ''
            self._part = self.step.value
        else:
            self.title = event.title
            if event.title in self._parts:
                self._part = event.title
            if event.title in (self._part, FIRST_TRAINING):
                share = event.share
        seconds = [part.seconds for part in self._parts.values()]
        position = [*self._parts].index(self._part)
        done = sum(seconds[:position]) + share * seconds[position]
        self.share = max(self.share, done / sum(seconds))

    @property
    def seconds_left(self) -> float | None:
        """Remaining time for all steps; None if it is not known yet."""
        if self.share < MIN_SHARE:
            return None
        elapsed = time.monotonic() - self._start
        return elapsed * (1 - self.share) / self.share

    def describe(self) -> str:
        """Return a bar in HTML, with the present step and the time left."""
        line = text(
            'page.progress.step',
            number=STEPS.index(self.step) + 1,
            count=len(STEPS),
            step=text(f'page.step.{self.step.name.lower()}'),
        )
        if self.title and self.title != self.step.value:
            part = escape(describe_part(self.title))
            line = text('page.progress.part', step=line, part=part)
        seconds = self.seconds_left
        if seconds is not None:
            left = describe_time(seconds)
            line = text('page.progress.left', step=line, left=left)
        title = text('page.progress.bar')
        return (
            f'<progress value="{self.share}" style="width: 100%" '
            f'aria-label="{title}"></progress><br>{line}'
        )


def describe_part(title: str) -> str:
    """Return the title of a bar in the language of the visitor."""
    return text(PARTS[title]) if title in PARTS else title


def describe_time(seconds: float) -> str:
    """Describe a remaining time in minutes."""
    minutes = round(seconds / 60)
    if not minutes:
        return text('page.progress.soon')
    return text('page.progress.minutes', number=minutes)
