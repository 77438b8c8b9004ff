# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Change a trained model in a separate process."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class ChangeResult:
    """Result of a change.

    Args:
        before (dict): Record of the model before.
        key (str): Key of the text why the change needs a confirmation; empty
            if it is done. Defaults to ''.
        values (dict): Values of the text. Defaults to {}.
    """

    before: dict[str, Any]
    key: str = ''
    values: dict[str, Any] = field(default_factory=dict)


def apply_change(
    folder: str, change: str, force: bool, settings: dict[str, Any]
) -> dict[str, Any]:
    """Change a model folder as the commands do.

    Args:
        folder (str): Model folder.
        change (str): Method of :class:`mmclca.fitting.FittedModel`.
        force (bool): Whether to change it although this needs a
            confirmation.
        settings (dict): Other arguments of the method.

    Returns:
        dict: Fields of a :class:`ChangeResult`.

    Raises:
        Error: If the change is refused. The model does not change.
    """
    from mmclca.fitting import FittedModel
    from mmclca.fitting.confirmation import ConfirmationError
    from mmclca.fitting.log import redirected_output

    with redirected_output():
        model = FittedModel(folder)
        changes = dict(
            add_photos=model.add_photos,
            remove_class=model.remove_class,
            rename_class=model.rename_class,
            move_photos=model.move_photos,
        )
        before = model.facts
        if change == 'undo':  # needs no confirmation
            model.undo()
            return asdict(ChangeResult(before))
        try:
            changes[change](**settings, force=force)
        except ConfirmationError as error:
            return asdict(ChangeResult(before, error.key, error.values))
    return asdict(ChangeResult(before))
