# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from contextlib import suppress
from pathlib import Path

from mmengine.dist import is_main_process
from mmengine.hooks import CheckpointHook

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.opening import load_from_file
from mmclca.registry import HOOKS
from mmclca.utils.atomic_backend import atomic_writes
from mmclca.utils.atomic_write import remove_partial_files, replace_text


@HOOKS.register_module()
class AtomicCheckpointHook(CheckpointHook):
    """mmengine's ``CheckpointHook``; a kill or a full disk loses nothing.

    A checkpoint is written beside its place, put on disk and renamed; then
    ``last_checkpoint`` names it, and only then what it supersedes is removed:
    there must be room for one more than are kept. Where it cannot be written,
    training goes on with a warning and tries again at the next one; a run
    whose last or best checkpoint is not on disk at its end fails.

    Its arguments are those of mmengine's.
    """

    def before_train(self, runner) -> None:
        """Find and clean up what a run that was killed has left."""
        self.unwritten = {}
        last = Path(runner.message_hub.get_info('last_ckpt', ''))
        if is_main_process() and last.is_file():
            # it may still name an older one, which mmengine removes now
            self._point_to(runner, last)
        super().before_train(runner)
        if is_main_process():
            remove_partial_files(Path(runner.work_dir))
            remove_partial_files(Path(self.out_dir))
        self.best_before = _best(runner.message_hub.runtime_info)
        if self.save_best and last.is_file():
            self._recall_best(runner.message_hub, last)

    def after_train(self, runner) -> None:
        """Publish checkpoints where mmengine's hook does.

        Raises:
            CheckpointError: If the last or the best one is not on disk.
        """
        if self.unwritten:
            raise CheckpointError(
                f'{"; ".join(self.unwritten.values())}. Make room, then go on '
                'from the newest one that is on disk with --resume'
            )
        super().after_train(runner)

    def _publish_model(self, runner, ckpt_path) -> None:
        with atomic_writes():
            super()._publish_model(runner, ckpt_path)

    def _save_checkpoint_with_step(self, runner, step, meta) -> None:
        name = self.filename_tmpl.format(step)
        path = self.file_backend.join_path(self.out_dir, name)
        info = runner.message_hub.runtime_info
        before = dict(info)
        self._remove_superseded(info)  # a better one has just been written
        self._note(runner.message_hub, path, step)
        try:
            with atomic_writes():
                runner.save_checkpoint(
                    self.out_dir,
                    name,
                    self.file_client_args,
                    save_optimizer=self.save_optimizer,
                    save_param_scheduler=self.save_param_scheduler,
                    meta=meta,
                    by_epoch=self.by_epoch,
                    backend_args=self.backend_args,
                    **self.args,
                )
            self.last_ckpt = path
            self._point_to(runner, path)
            self._remove_outdated(runner.message_hub)
        except OSError as error:
            if self.last_ckpt != path:  # nothing was written
                _restore(info, before, 'last_ckpt', 'keep_ckpt_ids')
            self._warn(runner, 'last', error)
        else:
            self.unwritten.pop('last', None)

    def _note(self, hub, path, step) -> None:
        """Note in the hub, which is saved with it, what is being written."""
        hub.update_info('last_ckpt', path)
        if self.max_keep_ckpts > 0:
            ids = hub.get_info('keep_ckpt_ids', [])
            ids = [*ids, step] if ids[-1:] != [step] else ids
            hub.update_info('keep_ckpt_ids', ids)

    def _point_to(self, runner, path) -> None:
        if is_main_process():
            replace_text(Path(runner.work_dir) / 'last_checkpoint', str(path))

    def _remove_outdated(self, hub) -> None:
        if self.max_keep_ckpts > 0:
            ids = hub.get_info('keep_ckpt_ids')
            hub.update_info('keep_ckpt_ids', ids[-self.max_keep_ckpts :])
            for step in ids[: -self.max_keep_ckpts]:
                name = self.filename_tmpl.format(step)
                self._remove(self.file_backend.join_path(self.out_dir, name))

    def _save_best_checkpoint(self, runner, metrics) -> None:
        if not self.save_best:
            return
        info = runner.message_hub.runtime_info
        before = _best(info)
        self._set_best_paths({})  # else mmengine removes them first
        try:
            with atomic_writes():
                super()._save_best_checkpoint(runner, metrics)
        except OSError as error:
            self._forget_unwritten(info)
            self._warn(runner, 'best', error)
        else:
            if _best(info) != before:
                self.unwritten.pop('best', None)
        self._set_best_paths(info)
        self._remove_superseded(info)

    def _set_best_paths(self, info) -> None:
        if len(self.key_indicators) == 1:
            self.best_ckpt_path = info.get('best_ckpt')
        else:
            self.best_ckpt_path_dict = {
                key: info.get(f'best_ckpt_{key}')
                for key in self.key_indicators
            }

    def _forget_unwritten(self, info) -> None:
        for key in [key for key in info if key.startswith('best_ckpt')]:
            if not self.file_backend.exists(info[key]):
                score = key.replace('best_ckpt', 'best_score')
                _restore(info, self.best_before, key, score)

    def _recall_best(self, hub, last) -> None:
        """Note best checkpoints that were written after the last one.

        It is written again with their paths and scores, and a run may end
        between the two. Older ones of its name are of another run.
        """
        since = last.stat().st_mtime_ns
        found = last.parent.glob(f'best_*_{last.name}')
        written = [(path.stat().st_mtime_ns, path) for path in found]
        for _, path in sorted(pair for pair in written if pair[0] >= since):
            with suppress(CheckpointError):  # of mmengine's hook, half of one
                saved = load_from_file(str(path))['message_hub']
                hub.update_info_dict(_best(saved['runtime_info']))
        self._set_best_paths(hub.runtime_info)
        self._remove_superseded(hub.runtime_info)

    def _remove_superseded(self, info) -> None:
        """Remove best checkpoints in whose place there are better ones."""
        before, self.best_before = self.best_before, _best(info)
        for key, path in before.items():
            if key.startswith('best_ckpt') and info[key] != path:
                self._remove(path)

    def _remove(self, path) -> None:
        if is_main_process() and self.file_backend.isfile(path):
            self.file_backend.remove(path)
        elif is_main_process() and self.file_backend.isdir(path):
            self.file_backend.rmtree(path)  # of DeepSpeed

    def _warn(self, runner, kind, error) -> None:
        self.unwritten[kind] = error.strerror
        runner.logger.warning(
            f'{self.unwritten[kind]}. Those written before stay and training '
            'goes on: make room before the next one is due'
        )


def _best(info) -> dict:
    """Of what the message hub holds, paths and scores of best checkpoints."""
    return {k: v for k, v in info.items() if k.startswith('best_')}


def _restore(info, before, *keys) -> None:
    for key in keys:
        info.pop(key, None)
        if key in before:
            info[key] = before[key]
