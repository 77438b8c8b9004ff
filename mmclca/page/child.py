# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Work of the page in a separate process, which sends events.

``python -m mmclca.page.child TASK SETTINGS``: a key in ``TASKS``, and its
settings as JSON; see :class:`mmclca.page.process.ChildProcess`.
"""

import json
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from mmclca.errors import is_wrong_input
from mmclca.export_formats import FORMATS
from mmclca.utils.events import (
    INTERRUPTED,
    ErrorEvent,
    ResultEvent,
    connect_to_parent,
)
from mmclca.utils.files import atomic_backend
from mmclca.utils.quiet import silence_libraries

from .model_changes import apply_change
from .problems import describe_bug, describe_problem


def fit_model(**settings) -> None:
    """Fit a model; ``settings`` are arguments of :func:`mmclca.fit`."""
    from mmclca.fitting import fit
    from mmclca.fitting.log import redirected_output

    with redirected_output():
        fit(**settings)


def export_folder(
    folder: str, format_name: str, out: str, photos: str, name: str
) -> list[dict]:
    """Export a model folder; return its 8-bit comparison, if any.

    This is the content of two notes: label and agreement.

    ``photos`` is the folder of its photos, ``name`` its title.
    """
    from mmclca.apis import TokenReductionInferencer
    from mmclca.fitting.exporting import export_model

    export_format = FORMATS[format_name]
    titles: dict = dict(photos=Path(photos), name=name)
    names = {option.name for option in export_format.options}
    exported = export_model(
        TokenReductionInferencer(folder, device='cpu'),
        folder,
        export_format,
        Path(out),
        {key: value for key, value in titles.items() if key in names},
    )
    comparison = exported.comparison
    return [asdict(note) for note in comparison.notes] if comparison else []


def do_task(task: str, settings: dict) -> object:
    """Run a task as a command runs, with safe writing."""
    with atomic_backend():
        return TASKS[task](**settings)


TASKS: dict[str, Callable] = dict(
    fit=fit_model, change=apply_change, export=export_folder
)


def main() -> int:
    """Do the task on the command line; return the exit code."""
    # before the imports of a task, which take seconds
    parent = connect_to_parent()
    silence_libraries()
    task, settings = sys.argv[1], json.loads(sys.argv[2])
    try:
        parent.send(ResultEvent(do_task(task, settings)))
    except KeyboardInterrupt:  # the page was stopped, or the user cancels
        return INTERRUPTED
    except Exception as error:
        if is_wrong_input(error):
            event = ErrorEvent(describe_problem(error), is_bug=False)
        else:
            traceback.print_exc()
            event = ErrorEvent(describe_bug(error), is_bug=True)
        parent.send(event)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
