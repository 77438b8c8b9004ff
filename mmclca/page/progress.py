# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Progress over all steps of a fit."""

from datetime import timedelta
from html import escape

from mmclca.fitting.log import Step
from mmclca.utils.events import ProgressEvent, StepEvent

STEPS = [*Step]


class FitProgress:
    """Progress over all steps of a fit, which never goes back.

    Attributes:
        step (Step): Present step.
        share (float): Finished share of all steps, 0 to 1.
        title (str): Present part of the step.
        time_left (timedelta): Remaining time of the part; 0 if unknown.
    """

    def __init__(self) -> None:
        self.step, self.share, self.title = STEPS[0], 0.0, ''
        self.time_left = timedelta()

    def update(self, event: StepEvent | ProgressEvent) -> None:
        """Take the progress from an event."""
        share = 0.0
        if isinstance(event, StepEvent):
            self.step, self.title = Step(event.step), ''
            self.time_left = timedelta()
        else:
            share, self.title = event.share, event.title
            self.time_left = timedelta(seconds=event.seconds_left or 0)
        done = (STEPS.index(self.step) + share) / len(STEPS)
        self.share = max(self.share, done)

    def describe(self) -> str:
        """Return a bar in HTML, with the present step."""
        part = time_left = ''
        if self.title and self.title != self.step.value:
            part = f' ({escape(self.title)})'
        if self.time_left:
            minutes = round(self.time_left.total_seconds() / 60)
            plural = 's' * (minutes > 1)
            time_left = f', about {minutes} minute{plural} left in this part'
            if minutes < 1:
                time_left = ', less than a minute left in this part'
        return (
            f'<progress value="{self.share}" style="width: 100%" '
            'aria-label="Progress"></progress><br>'
            f'Step {STEPS.index(self.step) + 1} of {len(STEPS)}: '
            f'{self.step.value}{part}{time_left}'
        )
