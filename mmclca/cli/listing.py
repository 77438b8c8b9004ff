# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Commands by their modules: a new module is a new command."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

FOLDERS = ('commands', 'pictures')
# of mmclca --help, in this order, with the commands to list first
GROUPS = {
    'fit and use': (
        'fit',
        'predict',
        'add-class',
        'remove-class',
        'rename-class',
        'undo',
        'report',
        'page',
    ),
    'train and test': ('train', 'test'),
    'analyze': (),
    'data': ('browse-dataset',),
    'models': (),
}


@dataclass(frozen=True)
class Listing:
    """Entry of a command in ``mmclca --help`` and in docs/tools.md.

    Each module in ``commands`` and ``pictures`` has a ``LISTING``, a docstring
    whose first paragraph is the description in ``--help``, a function
    ``add_arguments(parser)``, and ``main(args)`` or ``draw(args)``.
    """

    group: str
    summary: str
    page: str = ''  # in docs, without its suffix


def list_modules() -> dict[str, str]:
    """List the subcommands with their modules, sorted."""
    names = {
        path.stem: folder
        for folder in FOLDERS
        for path in Path(__file__).parent.glob(f'{folder}/[a-z]*.py')
    }
    return {
        name.replace('_', '-'): f'mmclca.cli.{folder}.{name}'
        for name, folder in sorted(names.items())
    }


MODULES = list_modules()
SUBCOMMANDS = [*MODULES]


def load_command(subcommand: str) -> ModuleType:
    """Import the module of a subcommand."""
    return import_module(MODULES[subcommand])


def list_groups() -> dict[str, dict[str, Listing]]:
    """List all subcommands with their entries by group."""
    groups: Mapping[str, dict[str, Listing]] = defaultdict(dict)
    for subcommand in SUBCOMMANDS:
        listing = load_command(subcommand).LISTING
        groups[listing.group][subcommand] = listing
    return {
        # the first commands stay before the others, which are sorted
        group: {name: groups[group][name] for name in (*first, *groups[group])}
        for group, first in GROUPS.items()
    }


def describe_commands() -> str:
    """Describe all subcommands, one per line, below their groups."""
    lines = []
    for group, listings in list_groups().items():
        lines += [f'\n{group}:']
        lines += [f'  {name:19} {x.summary}' for name, x in listings.items()]
    return '\n'.join(lines).strip()
