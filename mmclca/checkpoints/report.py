# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What became of the tensors of a file when they were loaded."""

from dataclasses import dataclass, field

from mmengine.logging import MMLogger

from mmclca.utils.terminal import printable


@dataclass
class Report:
    """The answer of a load, by names of the model.

    Args:
        source (str): Path or address of the file.
        loaded (list[str]): What came from the file.
        new (list[str]): What the file does not have, or has in another
            shape, and what stays as the model was initialized. CLR tokens
            that are initialized by CLS count as new.
        unused (list[str]): What of the file has no place in the model.
        resized (list[str]): What was changed in size, and how.
    """

    source: str
    loaded: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = {
            'resized': self.resized,
            'new, not loaded': _by_part(self.new),
            'not used here': _by_part(self.unused),
        }
        said = [f'{what}: {first(of)}' for what, of in parts.items() if of]
        loaded = f'{self.source}: {len(self.loaded)} tensors loaded'
        return printable('; '.join([loaded, *said]))

    def log(self) -> None:
        """Write it into mmengine's log."""
        MMLogger.get_current_instance().info(str(self))


def _by_part(names: list[str]) -> list[str]:
    """Names in which those of the same part of a model are one."""
    parts = {}
    for name in names:
        parts.setdefault('.'.join(name.split('.')[:2]), []).append(name)
    return [
        found[0] if len(found) == 1 else f'{part}.* ({len(found)})'
        for part, found in parts.items()
    ]


def first(names: list[str], count: int = 6) -> str:
    """The first of some names, and how many more there are."""
    more = f' and {len(names) - count} more' if len(names) > count else ''
    return (', '.join(names[:count]) or 'none') + more
