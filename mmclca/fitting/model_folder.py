# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The folder of a model that was fitted."""

import json
import shutil
from os import PathLike
from pathlib import Path

from mmclca.utils.atomic_write import replace_text

# what --overwrite removes; features are of images, and stay
OUTCOMES = (
    *('model.pth', 'probe.pth', 'threshold.json', 'photographs.csv'),
    *('evidence.safetensors', 'report.html', 'log.txt', 'fit.json'),
)


class ModelFolder:
    """Where the files of a fitted model lie.

    Args:
        path (str | Path): The folder; it need not exist.
    """

    def __init__(self, path: str | PathLike):
        self.path = Path(path)
        self.model = self.path / 'model.pth'
        self.probe = self.path / 'probe.pth'
        self.threshold = self.path / 'threshold.json'
        self.table = self.path / 'photographs.csv'
        self.evidence = self.path / 'evidence.safetensors'
        self.log = self.path / 'log.txt'
        self.features = self.path / 'features'
        self.training = self.path / 'training'
        self.file = self.path / 'fit.json'

    def read(self) -> dict:
        """The facts in fit.json.

        Raises:
            FileNotFoundError: If there is none.
            ValueError: If it is damaged.
        """
        if not self.file.is_file():
            raise FileNotFoundError(
                f'{self.path} is no folder of a fitted model, for it has no '
                'fit.json: python -m mmclca fit PHOTOGRAPHS --out '
                f'{self.path} makes one'
            )
        try:
            return json.loads(self.file.read_text(encoding='utf-8'))
        except ValueError as error:
            raise ValueError(
                f'{self.file} is damaged ({error}): fit again with --overwrite'
            ) from error

    def read_finished(self) -> dict:
        """As :meth:`read`, of a model that can be used.

        Raises:
            FileNotFoundError: If there is no model yet.
        """
        facts = self.read()
        if not self.model.is_file():
            raise FileNotFoundError(
                f'{self.path} has no model.pth yet: the fit was interrupted; '
                'the same command goes on with it'
            )
        return facts

    def write(self, facts: dict) -> None:
        """Replace fit.json."""
        text = json.dumps(facts, indent=1, ensure_ascii=False)
        replace_text(self.file, f'{text}\n')

    def known(self, facts: dict) -> dict | None:
        """What an earlier, equal call has found out.

        Args:
            facts (dict): Of the call that is to be answered.

        Returns:
            dict | None: None where there is nothing yet.

        Raises:
            ValueError: If the folder is of another call, or of no fit.
        """
        if not self.file.is_file():
            self._check_empty()
            return None
        had = self.read()
        other = _differences(had, facts)
        if other:
            raise ValueError(
                f'{self.path} was fitted with {"; ".join(other)}: give '
                'another folder with --out, or --overwrite to replace it '
                '(features of known photographs are kept)'
            )
        return had

    def _check_empty(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(
                f'{self.path} is a file: give a folder with --out'
            )
        inside = self.path.iterdir() if self.path.exists() else ()
        if any(path.name != self.features.name for path in inside):
            raise ValueError(
                f'{self.path} is there and not empty: give another folder '
                'with --out, or --overwrite to write into it'
            )

    def clear(self) -> None:
        """Remove what a fit has written but features."""
        for name in OUTCOMES:
            (self.path / name).unlink(missing_ok=True)
        shutil.rmtree(self.training, ignore_errors=True)


def _differences(had: dict, facts: dict) -> list[str]:
    """What is other than it was, in words."""
    old, new = had['call'], facts['call']
    other = [
        f'{name} {old.get(name)!r} (now {value!r})'
        for name, value in new.items()
        if old.get(name) != value
    ]
    if not other and had['photographs'] != facts['photographs']:
        numbers = (sum(x['counts'].values()) for x in (had, facts))
        other = ['{} photographs (now {}, or others)'.format(*numbers)]
    return other
