# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Describe a change of a model, in the language of the visitor."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

from mmclca.fitting.change_text import (
    describe_classes,
    describe_known_photos,
    describe_rename,
    describe_restored,
)
from mmclca.fitting.record import FitRecord
from mmclca.fitting.wording import LabeledLines
from mmclca.languages import text
from mmclca.utils.messages import join_first


@dataclass(frozen=True)
class FinishedChange:
    """Finished change.

    Args:
        name (str): Method of :class:`mmclca.fitting.FittedModel`.
        settings (dict): Its arguments.
        before (FitRecord): Record of the model before.
    """

    name: str
    settings: dict[str, Any]
    before: FitRecord

    def describe(self, record: FitRecord) -> str:
        """Describe the effect in HTML; ``record`` is that of the model now."""
        lines = [
            text('photos.labeled', label=fact.label, message=line)
            for fact in self._list_facts(record)
            for line in fact.lines
        ]
        return ''.join(f'<div>{escape(line)}</div>' for line in lines)

    def _list_facts(self, record: FitRecord) -> Iterable[LabeledLines]:
        if self.name == 'undo':
            return [describe_restored(record)]
        names = self._list_names(record)
        if not names:
            known = sorted({*self.settings['labels'].values()})
            return [describe_known_photos(join_first(known))]
        if self.name == 'rename_class':
            old, new = self.settings['name'], self.settings['new']
            if new not in self.before.photos.classes:
                return [describe_rename(old, new)]
        return describe_classes(self.before, record, names)

    def _list_names(self, record: FitRecord) -> list[str]:
        """List classes whose photos have changed."""
        before, after = self.before.photos.counts, record.photos.counts
        names = {x for x in before | after if before.get(x) != after.get(x)}
        if self.name == 'move_photos':  # as many may come as go
            names |= {*self.settings['labels'].values()} - {None}
        return sorted(names)
