# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from operator import ge, le
from os import PathLike
from pathlib import Path
from typing import Literal

import torch
from mmengine.dist import all_reduce_params, is_main_process, master_only
from mmengine.fileio import LocalBackend
from mmengine.fileio.backends import register_backend
from mmengine.hooks import CheckpointHook
from mmengine.runner import save_checkpoint

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.opening import load_from_file
from mmclca.engine.histories import restore_histories, store_histories
from mmclca.errors import Error
from mmclca.registry import HOOKS
from mmclca.utils.files import remove_partial_files, save, save_text
from mmclca.utils.messages import check_integer, suggest_choices

ATOMIC = dict(backend='mmclca_atomic')


@register_backend(ATOMIC['backend'])
class AtomicLocalBackend(LocalBackend):
    """mmengine's ``LocalBackend``, which replaces files in one step."""

    put, put_text = save, save_text


class _DeferredRemoval:
    """File backend that records removals instead of performing them."""

    def __init__(self, backend, noted: list[str]) -> None:
        self._backend, self._noted = backend, noted

    def __getattr__(self, name: str):
        return getattr(self._backend, name)

    def remove(self, path) -> None:
        """Record the name of a file or folder."""
        self._noted.append(Path(path).name)

    rmtree = remove


@HOOKS.register_module()
class AtomicCheckpointHook(CheckpointHook):
    """``CheckpointHook`` that loses no checkpoint to a kill or a full disk.

    Each checkpoint is written to a temporary file, synced and renamed. Then
    ``last_checkpoint`` names the new file, and only then are superseded
    checkpoints removed. The disk therefore needs room for one checkpoint more
    than are kept. A run that cannot write a checkpoint ends with an error.
    Local files go through a file backend of their own, unless
    ``backend_args`` or ``file_client_args`` are given.

    Logged values are stored as plain lists, see
    ``mmclca.engine.histories``.

    Args:
        interval (int): Epochs or iterations between checkpoints. Defaults to
            -1, never.
        by_epoch (bool): Count epochs, not iterations. Defaults to True.
        save_optimizer (bool): Store the state of the optimizer. Defaults to
            True.
        save_param_scheduler (bool): Store the state of the learning rate
            schedule. Defaults to True.
        out_dir (str | Path, optional): Folder with a subfolder per work dir.
            Defaults to None: the work dir.
        max_keep_ckpts (int): Number of kept checkpoints. Defaults to -1, all.
        save_last (bool): Always write the last checkpoint. Defaults to True.
        save_best (str | Sequence[str], optional): Metrics whose best
            checkpoints are kept, or 'auto', the first one. Defaults to None.
        rule (str | Sequence[str], optional): 'greater' or 'less' is better,
            per metric. Defaults to None: inferred from its name.
        greater_keys (Sequence[str], optional): Names of metrics for
            'greater'. Defaults to None: mmengine's list.
        less_keys (Sequence[str], optional): Names of metrics for 'less'.
            Defaults to None: mmengine's list.
        file_client_args (dict, optional): Deprecated by mmengine. Defaults to
            None.
        filename_tmpl (str, optional): File name, with '{}' for the number.
            Defaults to None: 'epoch_{}.pth' or 'iter_{}.pth'.
        backend_args (dict, optional): File backend. Defaults to None.
        published_keys (str | Sequence[str], optional): Keys in the published
            copies of the last and the best checkpoint. Defaults to None, no
            copies.
        save_begin (int): First epoch or iteration with a checkpoint. Defaults
            to 0.
        keep_last_best (bool): Keep the last of several equally good
            checkpoints, not the first. With few validation images, the first
            one comes from a model that has hardly been trained. Defaults to
            False.

    Raises:
        Error: If a number or file name is invalid.
    """

    def __init__(
        self,
        interval: int = -1,
        by_epoch: bool = True,
        save_optimizer: bool = True,
        save_param_scheduler: bool = True,
        out_dir: str | PathLike | None = None,
        max_keep_ckpts: int = -1,
        save_last: bool = True,
        save_best: str | list[str] | None = None,
        rule: Literal['greater', 'less'] | list[str] | None = None,
        greater_keys: Sequence[str] | None = None,
        less_keys: Sequence[str] | None = None,
        file_client_args: dict | None = None,
        filename_tmpl: str | None = None,
        backend_args: dict | None = None,
        published_keys: str | list[str] | None = None,
        save_begin: int = 0,
        *,
        keep_last_best: bool = False,
    ):
        # mmengine would compare them during the training
        check_integer(-1, interval=interval, max_keep_ckpts=max_keep_ckpts)
        check_integer(0, save_begin=save_begin)
        if filename_tmpl is not None and str(filename_tmpl).count('{}') != 1:
            raise Error(
                f'filename_tmpl={filename_tmpl!r} must be a file name with '
                'one {} for the number, such as epoch_{}.pth'
            )
        if keep_last_best:
            self.rule_map = dict(greater=ge, less=le)
        super().__init__(
            interval=interval,
            by_epoch=by_epoch,
            save_optimizer=save_optimizer,
            save_param_scheduler=save_param_scheduler,
            out_dir=out_dir,
            max_keep_ckpts=max_keep_ckpts,
            save_last=save_last,
            save_best=save_best,
            rule=rule,
            greater_keys=greater_keys,
            less_keys=less_keys,
            file_client_args=file_client_args,
            filename_tmpl=filename_tmpl,
            backend_args=backend_args,
            published_keys=published_keys,
            save_begin=save_begin,
        )

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        """Store logged values as lists."""
        store_histories(checkpoint)

    def after_load_checkpoint(self, runner, checkpoint: dict) -> None:
        """Restore logged values for a resumed training."""
        restore_histories(checkpoint)

    def before_train(self, runner) -> None:
        """Select the backend and clean up after a killed run."""
        local = '://' not in str(self.out_dir or runner.work_dir)
        if local and not (self.backend_args or self.file_client_args):
            self.backend_args = ATOMIC
        hub = runner.message_hub
        folder = Path(runner.work_dir)
        if self.out_dir is not None:
            folder = Path(self.out_dir, folder.name)
        # use only the name: a foreign checkpoint may store any path
        last = folder / Path(hub.get_info('last_ckpt', '')).name
        if last.is_file():
            self.last_ckpt = str(last)  # written again after a best one
        super().before_train(runner)
        if is_main_process():
            remove_partial_files(Path(runner.work_dir))
            remove_partial_files(Path(self.out_dir))
        # stored in checkpoints, so that a resumed run removes these files
        self.superseded = list(hub.get_info('superseded', []))
        hub.update_info('superseded', self.superseded)
        self.disk = self.file_backend
        self.file_backend = _DeferredRemoval(self.disk, self.superseded)
        self._remove_superseded()

    @contextmanager
    def _saving(self) -> Iterator[None]:
        """Remove superseded files after a write, or advise how to resume."""
        try:
            yield
        except OSError as error:
            raise CheckpointError(
                f'{error.strerror}; free disk space, then `resume` from '
                'the newest checkpoint'
            ) from error
        self._remove_superseded()

    def _save_checkpoint_with_step(self, runner, step, meta) -> None:
        # BatchNorm statistics differ between processes until they are stored
        buffers = filter(torch.is_floating_point, runner.model.buffers())
        all_reduce_params(buffers, op='mean')
        with self._saving():
            super()._save_checkpoint_with_step(runner, step, meta)

    def _save_best_checkpoint(self, runner, metrics) -> None:
        missing = {*(self.save_best or ())} - {'auto', *metrics}
        if missing:
            raise Error(
                f'save_best: {suggest_choices(min(missing), sorted(metrics))}'
            )
        with self._saving():
            super()._save_best_checkpoint(runner, metrics)

    @master_only
    def _publish_model(self, runner, ckpt_path: str) -> None:
        """Write a copy for release; mmengine's method ignores the backend."""
        if self.backend_args != ATOMIC:
            super()._publish_model(runner, ckpt_path)
            return
        checkpoint = load_from_file(ckpt_path)
        kept = {
            k: v for k, v in checkpoint.items() if k in self.published_keys
        }
        digest = sha256(pickle.dumps(kept)).hexdigest()[:8]
        path = f'{Path(ckpt_path).with_suffix("")}-{digest}.pth'
        with self._saving():
            save_checkpoint(kept, path, backend_args=self.backend_args)
        runner.logger.info(
            f'The checkpoint ({ckpt_path}) is published to {path}.'
        )

    def _remove_superseded(self) -> None:
        while self.superseded and is_main_process():
            name = self.superseded.pop()
            pattern = re.escape(self.filename_tmpl).replace(r'\{\}', r'\d+')
            if not re.fullmatch(rf'{pattern}|best_[^/\\]+\.pth', name):
                continue  # a foreign checkpoint may name any file
            path = self.disk.join_path(self.out_dir, name)
            if self.disk.isfile(path):
                self.disk.remove(path)
            elif self.disk.isdir(path):
                self.disk.rmtree(path)  # DeepSpeed writes folders
