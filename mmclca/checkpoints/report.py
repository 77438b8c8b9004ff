# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Report which tensors of a checkpoint were loaded."""

import logging
from dataclasses import dataclass, field

from mmengine.logging import MMLogger

from mmclca.utils.messages import join_first, printable


@dataclass
class LoadReport:
    """Tensors of a model and a checkpoint, by parameter name of the model.

    Args:
        source (str): Path or URL as given by the user.
        file_names (list[str]): Parameter names in the file.
        loaded (list[str]): Tensors loaded from the checkpoint.
        new (list[str]): Tensors missing in the checkpoint.
        unused (list[str]): Tensors of the checkpoint without a place.
        resized (list[str]): Descriptions of changed tensors.
    """

    source: str
    file_names: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)

    def describe(self) -> str:
        """Describe the report in one line."""
        parts = {
            'resized': self.resized,
            'new, not loaded': _group_by_part(self.new),
            'not used here': _group_by_part(self.unused),
        }
        lists = [
            f'{part}: {join_first(names, 6)}'
            for part, names in parts.items()
            if names
        ]
        loaded = f'{self.source}: {len(self.loaded)} tensors loaded'
        return printable('; '.join([loaded, *lists]))

    def log(self, level: int = logging.INFO) -> None:
        """Write the report to mmengine's log, at a level of ``logging``."""
        MMLogger.get_current_instance().log(level, self.describe())


def _group_by_part(names: list[str]) -> list[str]:
    """Shorten names to ``head.layers.* (2)``, by their first two parts."""
    groups: dict[str, list[str]] = {}
    for name in names:
        part = '.'.join(name.split('.')[:2])
        groups.setdefault(part, []).append(name)
    return [
        group[0] if len(group) == 1 else f'{part}.* ({len(group)})'
        for part, group in groups.items()
    ]
