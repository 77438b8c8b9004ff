# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Problems of photos: skipped files, and labels that may be wrong."""

from dataclasses import dataclass
from typing import NamedTuple

from mmclca.utils.messages import join_first


class ProblemKind(NamedTuple):
    """How to describe problems of one kind.

    Args:
        label (str): 'Skipped', 'Warning' or 'Untested'; '' for a complete
            line.
        template (str): Format of the message. It may use the number of
            cases, ``{number}``, the plural endings ``{s}`` and ``{es}``, and
            the ``{reason}`` of the problem.
        separator (str): Text between the names of a case.
    """

    label: str
    template: str
    separator: str = ' = '


KINDS = {
    'assumption': ProblemKind('Warning', '{reason}'),
    'unused': ProblemKind('Skipped', '{number} file{s} {reason}'),
    'hidden': ProblemKind(
        'Skipped', '{number} system folder{s} or hidden image{s}'
    ),
    'unreadable': ProblemKind('Skipped', '{number} unreadable', ': '),
    'duplicates': ProblemKind('Skipped', '{number} duplicate{s}, used once'),
    'conflicting_labels': ProblemKind(
        'Skipped', '{number} photo{s} in several classes'
    ),
    'conflicting_near_duplicates': ProblemKind(
        'Warning',
        '{number} pair{s} of near-duplicates in two classes, so one label of '
        'each pair is probably wrong',
    ),
    'cross_split_duplicates': ProblemKind(
        'Skipped', '{number} also in val or test, so not used for training'
    ),
    'untrained_classes': ProblemKind(
        'Skipped', '{number} class{es} without training photos', ', '
    ),
    'similar_class_names': ProblemKind(
        'Warning', '{number} case{s} of nearly equal class names'
    ),
    'cross_split_groups': ProblemKind(
        'Warning', '{number} group{s} in both train and val or test'
    ),
    'single_photo_classes': ProblemKind(
        'Untested', '{number} class{es} with one photo, used for training only'
    ),
    # a line in a record of an earlier version
    'line': ProblemKind('', '{reason}'),
}


@dataclass(frozen=True)
class Problem:
    """One kind of problem, and the photos or classes that have it.

    Args:
        kind (str): Key of :data:`KINDS`.
        cases (tuple[tuple[str, ...], ...]): Names per case: equal files, a
            file and its problem, a class, or a group. Defaults to ().
        reason (str): Reason or assumption that holds for all cases. Defaults
            to ''.
    """

    kind: str
    cases: tuple[tuple[str, ...], ...] = ()
    reason: str = ''

    @property
    def label(self) -> str:
        """Consequence of the problem, see :class:`ProblemKind`."""
        return KINDS[self.kind].label

    @property
    def message(self) -> str:
        """Number of cases and the first three of them, without the label."""
        _, template, separator = KINDS[self.kind]
        number = len(self.cases)
        s, es = ('', '') if number == 1 else ('s', 'es')
        message = template.format(
            number=number, s=s, es=es, reason=self.reason
        )
        if not self.cases:
            return message
        cases = [separator.join(case) for case in self.cases]
        return f'{message} ({join_first(cases, limit=3, between="; ")})'

    def describe(self) -> str:
        """Describe the problem in one line."""
        return f'{self.label}: {self.message}' if self.label else self.message
