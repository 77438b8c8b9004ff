# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""fit.json: what is known of a model."""

import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from hashlib import sha256

from mmclca.datasets.photographs import Checked, Photographs
from mmclca.utils.provenance import versions
from mmclca.version import __version__

UNEVEN = 10  # times as many photographs in the largest class


@dataclass(frozen=True)
class FitRecord:
    """What is known of a model, in the order of fit.json.

    Each step of a fit returns parts of it, a dict each. What is not known
    yet is None.
    """

    version: str | None = None
    call: dict | None = None
    photographs: str | None = None
    source: str | None = None
    classes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    weights: dict | None = None
    model: dict | None = None
    cost: dict | None = None
    probe: dict | None = None
    threshold: dict | None = None
    learning_curve: list[dict] = field(default_factory=list)
    training: dict | None = None
    held_out: dict | None = None
    final: str | None = None
    versions: dict = field(default_factory=dict)
    date: str | None = None
    seconds: float = 0

    @classmethod
    def of_call(cls, call: dict, checked: Checked) -> 'FitRecord':
        """The record before anything is fitted."""
        date = datetime.now(timezone.utc).isoformat(timespec='seconds')
        new = cls(__version__, call, versions=versions(), date=date)
        return new.of_photographs(checked)

    @classmethod
    def of_text(cls, text: str) -> 'FitRecord':
        """The record in a text of fit.json.

        Parts of which nothing is known are dicts of None in older ones.
        """
        parts = json.loads(text).items()
        return cls(**{name: x for name, x in parts if not _is_blank(x)})

    def of_photographs(self, checked: Checked) -> 'FitRecord':
        """The record with what it holds of photographs replaced."""
        photographs = checked.photographs
        learned = photographs.select(photographs.to_train())
        return replace(
            self,
            photographs=_digest(photographs),
            source=photographs.source,
            classes=list(photographs.classes),
            counts=learned.counts(),
            problems=checked.lines(),
        )

    @property
    def text(self) -> str:
        """The content of fit.json."""
        return json.dumps(vars(self), indent=1, ensure_ascii=False) + '\n'

    @property
    def best(self) -> dict:
        """What tells most of how good the model is.

        ``accuracy``, ``low`` and ``high`` of photographs in val and test
        folders, else of those that a trained model was measured on, else of
        the folds of the probe.
        """
        holdout = self.training and self.training['holdout']
        trained = self.final == 'trained' and holdout
        return self.held_out or trained or self.probe

    @property
    def is_uneven(self) -> bool:
        """Whether some classes have many times the photographs of others."""
        counts = [n for n in self.counts.values() if n]
        return max(counts) >= UNEVEN * min(counts)


def _is_blank(part) -> bool:
    return part is None or (
        isinstance(part, dict) and {*map(type, part.values())} == {type(None)}
    )


def _digest(photographs: Photographs) -> str:
    """What tells a set of photographs and their classes from others."""
    rows = [photographs.paths, photographs.labels, photographs.classes]
    rows += [photographs.groups, photographs.splits]
    return sha256(json.dumps(rows).encode()).hexdigest()[:16]
