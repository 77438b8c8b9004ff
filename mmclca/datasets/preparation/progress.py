# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import sys

from mmengine.utils import track_parallel_progress, track_progress


def track(function, items, jobs, file=None):
    """Call a function for each item, with a progress bar.

    Args:
        function (Callable): What to call; it can be pickled.
        items (Sequence): What to call it with.
        jobs (int): Processes that call it.
        file (TextIO): Where the bar is shown. Defaults to standard output.

    Returns:
        list: What it gave for each item.
    """
    file = file or sys.stdout
    if jobs == 1:
        return track_progress(function, items, file=file)
    return track_parallel_progress(
        function, items, jobs, chunksize=16, file=file
    )
