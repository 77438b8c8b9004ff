# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Progress over all steps, and the time left."""

import time
from dataclasses import dataclass
from html import escape

from mmclca.fitting.log import Step
from mmclca.utils.events import ProgressEvent, StepEvent

STEPS = [*Step]
# titles of bars within a step
FEATURES, SECOND_TRAINING = 'Features', 'Fine-tuning on all photos'
FIRST_TRAINING = 'Fine-tuning for the test'  # stands for its step
LEFT, LESS = 'about {} minute{} left', 'less than a minute left'
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
        'Cross-validation': Part(Step.FIRST_MODEL, 3 + 0.01 * photos),
        Step.FINE_TUNE.value: Part(Step.FINE_TUNE, 0.8 * epochs),
        SECOND_TRAINING: Part(Step.FINE_TUNE, epochs),
        'Writing the report': Part(Step.FIRST_MODEL, 3),
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
        part = time_left = ''
        if self.title and self.title != self.step.value:
            part = f' ({escape(self.title)})'
        seconds = self.seconds_left
        if seconds is not None:
            minutes = round(seconds / 60)
            left = LEFT.format(minutes, 's' * (minutes > 1))
            time_left = f', {left if minutes else LESS}'
        return (
            f'<progress value="{self.share}" style="width: 100%" '
            'aria-label="Progress"></progress><br>'
            f'Step {STEPS.index(self.step) + 1} of {len(STEPS)}: '
            f'{self.step.value}{part}{time_left}'
        )
