# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Problems of photos: skipped files, and labels that may be wrong."""

from dataclasses import dataclass
from typing import NamedTuple

from mmclca.languages import Note, text
from mmclca.utils.messages import join_first


class ProblemKind(NamedTuple):
    """How to describe problems of one kind.

    The text with the key ``photos.`` and the name of the kind may use the
    number of cases, ``{number}``, and the ``{reason}`` of the problem.

    Args:
        consequence (str): 'skipped', 'warning' or 'untested'; '' if the
            reason is a complete line.
        separator (str): Text between the names of a case.
    """

    consequence: str
    separator: str = ' = '


KINDS = {
    'assumption': ProblemKind('warning'),
    'unused': ProblemKind('skipped'),
    'hidden': ProblemKind('skipped'),
    'unreadable': ProblemKind('skipped', ': '),
    'duplicates': ProblemKind('skipped'),
    'conflicting_labels': ProblemKind('skipped'),
    'conflicting_near_duplicates': ProblemKind('warning'),
    'cross_split_duplicates': ProblemKind('skipped'),
    'untrained_classes': ProblemKind('skipped', ', '),
    'similar_class_names': ProblemKind('warning'),
    'cross_split_groups': ProblemKind('warning'),
    'single_photo_classes': ProblemKind('untested'),
    # a line in a record of an earlier version
    'line': ProblemKind(''),
}


@dataclass(frozen=True)
class Problem:
    """One kind of problem, and the photos or classes that have it.

    Args:
        kind (str): Key of :data:`KINDS`.
        cases (tuple[tuple[str, ...], ...]): Names per case: equal files, a
            file and its problem, a class, or a group. Defaults to ().
        reason (str): Reason or assumption that holds for all cases, in a
            record of an earlier version. Defaults to ''.
        note (Note, optional): Reason or assumption that holds for all cases.
            Defaults to None.
    """

    kind: str
    cases: tuple[tuple[str, ...], ...] = ()
    reason: str = ''
    note: Note | None = None

    @property
    def consequence(self) -> str:
        """See :class:`ProblemKind`."""
        return KINDS[self.kind].consequence

    @property
    def label(self) -> str:
        """Title of the consequence; '' if the reason is a complete line."""
        return text(f'photos.{self.consequence}') if self.consequence else ''

    @property
    def message(self) -> str:
        """Number of cases and the first three of them, without the label."""
        reason = str(self.note) if self.note else self.reason
        message = text(
            f'photos.{self.kind}', number=len(self.cases), reason=reason
        )
        separator = KINDS[self.kind].separator
        if not self.cases:
            return message
        cases = [separator.join(case) for case in self.cases]
        shown = join_first(cases, limit=3, between='; ')
        return text('photos.cases', message=message, cases=shown)

    def describe(self) -> str:
        """Describe the problem in one line."""
        if not self.label:
            return self.message
        return text('photos.labeled', label=self.label, message=self.message)
