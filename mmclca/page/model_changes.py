# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Change a trained model in a separate process."""

from typing import Any


def apply_change(
    folder: str, change: str, force: bool, settings: dict[str, Any]
) -> str:
    """Change a model folder as the commands do.

    Args:
        folder (str): Model folder.
        change (str): Method of :class:`mmclca.fitting.FittedModel`.
        force (bool): Whether to change it although this needs a
            confirmation.
        settings (dict): Other arguments of the method.

    Returns:
        str: Why the change needs a confirmation; empty if it is done.

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
        if change == 'undo':  # needs no confirmation
            model.undo()
            return ''
        try:
            changes[change](**settings, force=force)
        except ConfirmationError as error:
            return error.reason
    return ''
