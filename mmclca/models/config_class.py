# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmclca.errors import Error
from mmclca.registry import MODELS


def get_class(settings: dict | None) -> type:
    """Return the class named by a config, or ``object`` for None.

    Raises:
        Error: If the type is not registered.
    """
    if not settings:
        return object
    name = settings['type']
    config_class = name if isinstance(name, type) else MODELS.get(name)
    if config_class is None:
        raise Error(
            f'type={name!r} is not registered; import its module, such as '
            "with custom_imports=dict(imports=['my_module'])"
        )
    return config_class
