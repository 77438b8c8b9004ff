# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the steps of a fit hand on."""

from collections.abc import Callable
from dataclasses import dataclass

from mmengine.config import Config

from mmclca.datasets.photographs import Checked, Photographs
from mmclca.models import Variant

from .model_folder import ModelFolder
from .quiet import Log
from .weights import Pretrained


@dataclass
class Job:
    """A fit, and what is known so far.

    Args:
        folder (ModelFolder): Where its files lie.
        facts (dict): Of fit.json; each step fills in its part.
        checked (Checked): The photographs, and what became of others.
        pretrained (Pretrained): The weights that it starts from.
        variant (Variant): The model.
        config (Config): Its config, with as many classes as there are.
        device (str): Where it runs.
        log (Log): Where it says what it does.
    """

    folder: ModelFolder
    facts: dict
    checked: Checked
    pretrained: Pretrained
    variant: Variant
    config: Config
    device: str
    log: Log

    @property
    def tell(self) -> Callable[[str], None]:
        """Shows the user a line."""
        return self.log.tell_user

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        return self.checked.photographs.classes

    @property
    def training(self) -> Photographs:
        """The photographs to learn from."""
        photographs = self.checked.photographs
        return photographs.select(photographs.to_train())

    @property
    def held_out(self) -> Photographs:
        """Those of val and test folders."""
        photographs = self.checked.photographs
        learned = {*photographs.to_train()}
        everything = range(len(photographs.paths))
        return photographs.select([i for i in everything if i not in learned])

    def save(self) -> None:
        """Write fit.json as it is now, as a draft."""
        self.folder.draft.write(self.facts)

    def publish(self) -> None:
        """Put all that was written in the place of the model of before."""
        self.save()
        self.folder.publish()
