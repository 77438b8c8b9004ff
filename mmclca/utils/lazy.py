# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from contextlib import redirect_stdout
from importlib import import_module
from inspect import ismodule


class lazy:  # noqa: N801, used like a function
    """Module imported at the first use of one of its names.

    Commands use it for packages with slow imports, so that ``--help`` and
    wrong options respond immediately.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str):
        # progress bars keep the standard output at import, so import first
        import mmengine.utils  # noqa: F401

        with redirect_stdout(None):  # mmpretrain prints missing readers
            module = import_module(self._name)
        if hasattr(module, name) and not ismodule(getattr(module, name)):
            return getattr(module, name)
        below = f'{self._name}.{name}'
        try:
            with redirect_stdout(None):
                import_module(below)
        except ModuleNotFoundError as error:
            if error.name != below:
                raise
            raise AttributeError(f'{below} does not exist') from error
        return type(self)(below)
