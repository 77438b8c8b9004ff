# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Logged values in checkpoints, as plain lists.

mmengine stores its ``HistoryBuffer``, whose arrays need NumPy's pickles.
Plain lists can be read by ``torch.load(weights_only=True)``. The ``Runner``
of mmengine resumes such checkpoints, with empty histories.
"""

import numpy as np
from mmengine.logging import HistoryBuffer
from mmengine.utils import apply_to

from mmclca.checkpoints.error import CheckpointError

KEY = 'histories'  # in a checkpoint
# contents from mmengine with plain values; other keys hold tensors
PLAIN_KEYS = ('meta', 'message_hub', 'param_schedulers')


def store_histories(checkpoint: dict) -> None:
    """Replace histories and NumPy values in a checkpoint by plain ones.

    Args:
        checkpoint (dict): Contents of mmengine's ``save_checkpoint``, changed
            in place. Objects of the runner do not change.
    """
    for key in {*PLAIN_KEYS} & checkpoint.keys():
        checkpoint[key] = apply_to(
            checkpoint[key],
            lambda value: isinstance(value, np.ndarray | np.generic),
            lambda value: value.tolist(),
        )
    hub = checkpoint['message_hub']
    checkpoint[KEY] = {
        name: dict(
            values=history.data[0].tolist(),
            counts=history.data[1].tolist(),
            max_length=history.max_length,
        )
        for name, history in hub['log_scalars'].items()
    }
    hub['log_scalars'] = {}
    hub['resumed_keys'] = {
        name: is_resumed
        for name, is_resumed in hub['resumed_keys'].items()
        if name in hub['runtime_info']
    }


def restore_histories(checkpoint: dict) -> None:
    """Turn stored lists into the histories of mmengine, in place.

    Checkpoints with histories of mmengine stay as they are.

    Raises:
        CheckpointError: If the lists are damaged.
    """
    histories = checkpoint.pop(KEY, {})
    hub = checkpoint.get('message_hub')
    if not histories or hub is None:
        return
    try:
        buffers = {
            name: HistoryBuffer(
                np.array(history['values'], float),
                np.array(history['counts'], float),
                history['max_length'],
            )
            for name, history in histories.items()
        }
        hub['log_scalars'].update(buffers)
        hub['resumed_keys'].update(dict.fromkeys(buffers, True))
    except (
        AssertionError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:
        raise CheckpointError(
            f'the logged values in {getattr(checkpoint, "name", "the file")} '
            f'are damaged ({type(error).__name__}: {error}); resume from '
            'another checkpoint'
        ) from error
