# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

from mmclca.errors import Error


class CheckpointError(Error):
    """A checkpoint is unreadable, unsafe or for another model."""


class DownloadError(CheckpointError):
    """Weights cannot be downloaded."""
