# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Starts cells as processes of this machine or as jobs of a cluster."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import submitit
from mmengine.config import Config

from mmclca.utils.atomic_write import replace_text

from .cell import Cell
from .identity import config_hash
from .run import run_cell


@dataclass
class Launcher:
    """How cells of a sweep are started.

    Args:
        executor (submitit.Executor): Of this machine or of a cluster.
        root (Path): Folder of the sweep.
        configs (dict[Cell, Config]): Config of each cell.
        slots (int): Cells that it takes at a time.
        threads (int): Threads of one cell on the CPU. Defaults to 1.
        num_gpus (int): GPUs that each job sees; cells are spread over them.
            Defaults to 0.
        keep_checkpoints (bool): See :func:`run_cell`. Defaults to False.
    """

    executor: submitit.Executor
    root: Path
    configs: dict[Cell, Config]
    slots: int
    threads: int = 1
    num_gpus: int = 0
    keep_checkpoints: bool = False
    gpus: dict[Cell, int] = field(init=False, default_factory=dict)
    digests: dict[Cell, str] = field(init=False)

    def __post_init__(self):
        configs = self.configs.items()
        self.digests = {cell: config_hash(cfg) for cell, cfg in configs}

    def launch(self, cells: Sequence[Cell]) -> dict[Cell, submitit.Job]:
        """Start cells, on Slurm as one array.

        Args:
            cells (Sequence[Cell]): The cells; each finds its config in its
                folder.
        """
        with self.executor.batch():
            return {cell: self._submit(cell) for cell in cells}

    def release(self, cell: Cell) -> None:
        """Note that a cell has ended."""
        del self.gpus[cell]

    def _submit(self, cell: Cell) -> submitit.Job:
        digest = self.digests[cell]
        config = self.root / cell.name / digest / 'config.py'
        replace_text(config, self.configs[cell].pretty_text)
        used = Counter(self.gpus.values())
        gpu = min(range(max(self.num_gpus, 1)), key=lambda n: used[n])
        self.gpus[cell] = gpu
        settings = self.threads, self.keep_checkpoints
        return self.executor.submit(
            run_cell, cell, self.root, digest, gpu, *settings
        )
