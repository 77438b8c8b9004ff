# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Logged values in checkpoints, as plain lists.

mmengine stores its ``HistoryBuffer``, whose arrays need NumPy's pickles.
Plain lists can be read by ``torch.load(weights_only=True)``. The ``Runner``
of mmengine resumes such checkpoints, with empty histories.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from mmengine.logging import HistoryBuffer
from mmengine.utils import apply_to

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.gate.json_parsing import parse_json
from mmclca.errors import Error

KEY = 'histories'  # in a checkpoint
# contents from mmengine with plain values; other keys hold tensors
PLAIN_KEYS = ('meta', 'message_hub', 'param_schedulers')


@dataclass(frozen=True)
class LoggedValues:
    """Values of a history in a checkpoint.

    Args:
        values (list[float]): Logged values, which may be NaN.
        counts (list[float]): Number of samples per value.
        max_length (int): Maximum length of the history.
    """

    values: list
    counts: list
    max_length: int

    @classmethod
    def from_buffer(cls, history: HistoryBuffer) -> 'LoggedValues':
        """Copy the values of a history."""
        values, counts = history.data
        return cls(values.tolist(), counts.tolist(), history.max_length)

    def to_buffer(self) -> HistoryBuffer:
        """Return the history of mmengine; raise Error without numbers."""
        if len(self.values) != len(self.counts):
            raise Error(
                f'{len(self.values)} values have {len(self.counts)} counts'
            )
        try:
            arrays = [np.array(x, float) for x in (self.values, self.counts)]
        # for an integer that is too large, another object, and a text
        except (OverflowError, TypeError, ValueError) as error:
            raise Error(f'not numbers: {error}') from error
        return HistoryBuffer(arrays[0], arrays[1], self.max_length)


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
        name: asdict(LoggedValues.from_buffer(history))
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
    if not histories or checkpoint.get('message_hub') is None:
        return
    try:
        hub = parse_json(
            dict[str, Any], checkpoint['message_hub'], 'message_hub'
        )
        logged = parse_json(dict[str, LoggedValues], histories, KEY)
        resumed = parse_json(
            dict[str, bool], hub.get('resumed_keys'), 'resumed_keys'
        )
        buffers = {name: values.to_buffer() for name, values in logged.items()}
    except Error as error:
        raise CheckpointError(
            f'the logged values in {getattr(checkpoint, "name", "the file")} '
            f'are damaged ({error}); resume from another checkpoint'
        ) from error
    hub['log_scalars'] = buffers
    hub['resumed_keys'] = {**resumed, **dict.fromkeys(buffers, True)}
    checkpoint['message_hub'] = hub
