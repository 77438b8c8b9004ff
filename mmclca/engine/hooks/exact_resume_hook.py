# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from itertools import chain, repeat

from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.runner import IterBasedTrainLoop

from mmclca.datasets.seeded_batches import SeededBatches
from mmclca.engine.training_data import (
    KEY,
    count_images_per_step,
    describe_data,
    find_start,
    list_changes,
    read_training_data,
)
from mmclca.errors import Error
from mmclca.registry import HOOKS
from mmclca.utils.random_state import seed_random_state


@HOOKS.register_module()
class ExactResumeHook(Hook):
    """Make a resumed run equal to an uninterrupted one.

    All random numbers of an iteration follow from the seed and the number of
    the iteration, both for its images and for the model. The number of
    workers does not matter. Inside an epoch, a resumed run skips the images
    already used. If it was stopped between a checkpoint and its validation,
    it validates first.

    Checkpoints store the seed and a description of the data, see
    :func:`mmclca.engine.training_data.describe_data`. If one of them has
    changed, the images already used are not known. The run then starts at
    the beginning of the epoch, or of the pass over the data if training is
    counted in iterations, and logs what has changed. For a checkpoint
    without this description, only the number of batches per epoch is compared.
    """

    priority = 'LOWEST'  # after other hooks have used random numbers
    checkpoint = {}

    def after_load_checkpoint(self, runner, checkpoint: dict) -> None:
        """Keep the checkpoint until the data are built."""
        self.checkpoint = checkpoint

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        """Store the description of the data, and the beginning of the pass."""
        meta, batches = checkpoint['meta'], self.batches
        passes, start = batches.passes, batches.start
        if self.data['unit'] == 'epochs' and meta['epoch'] > passes:
            passes, start = meta['epoch'], meta['iter']
        meta[KEY] = dict(self.data, passes=passes, start=start)

    def before_train(self, runner) -> None:
        """Replace the batch sampler, and run a missing validation.

        Raises:
            Error: If the data give no batch.
        """
        self.data = describe_data(runner)
        if not self.data['batches']:
            raise Error(
                'train_dataloader has no batches: with drop_last, batch_size '
                'must not exceed the number of images'
            )
        loader = runner.train_dataloader
        self.batches = SeededBatches(loader, runner.seed, get_rank())
        checkpoint, self.checkpoint = self.checkpoint, {}  # frees memory
        if not runner.iter:
            return
        stored = read_training_data(
            checkpoint, self.data, runner.epoch, runner.iter
        )
        self._resume(runner, stored)
        if _validation_is_due(runner, stored['start'] == runner.iter):
            runner.val_loop.run()

    def _resume(self, runner, stored: dict) -> None:
        """Set the position in the data; report changes in one line."""
        data, batches = self.data, self.batches
        passes, start = find_start(stored, data, runner.iter)
        is_epoch = data['unit'] == 'epochs'
        if is_epoch:
            loop = runner.train_loop
            passes, left = loop.epoch, loop.max_epochs - loop.epoch
            loop._max_iters = start + left * len(batches)
            runner.message_hub.update_info('max_iters', loop.max_iters)
        batches.passes, batches.start = passes, start
        if changes := list_changes(stored, data):
            number = passes + 1 + (start < runner.iter)
            unit = 'epoch' if is_epoch else 'pass over the data'
            runner.logger.warning(
                f'Changed since the checkpoint: {"; ".join(changes)}; '
                f'training starts at the beginning of {unit} {number}'
            )

    def before_val(self, runner) -> None:
        """Note the validation for the checkpoints after it."""
        runner.message_hub.update_info('validated', runner.iter)

    def before_train_epoch(self, runner) -> None:
        """Start at the first unused batch."""
        batches, loop = self.batches, runner.train_loop
        batches.iter = runner.iter
        if isinstance(loop, IterBasedTrainLoop):
            loop.dataloader_iterator._epoch = batches.passes
            batches.sampler.set_epoch(batches.passes)
        elif runner.epoch > batches.passes:
            batches.passes, batches.start = runner.epoch, runner.iter
        batches.skipped = runner.iter - batches.start
        if self.data['endless']:
            skipped = batches.passes * self.data['images']
            batches.skipped += skipped // count_images_per_step(self.data)
        if isinstance(loop, IterBasedTrainLoop):
            _keep_position(loop)

    def before_train_iter(self, runner, batch_idx, data_batch=None) -> None:
        """Seed the model."""
        seed_random_state(runner.seed, runner.iter)


def _keep_position(loop: IterBasedTrainLoop) -> None:
    """Let a resumed loop read the first unused batch next.

    mmengine would read and discard all images of completed passes.
    """
    iterator = loop.dataloader_iterator
    if hasattr(iterator, 'skip_iter'):
        iterator.skip_iter = lambda iters: None
    else:  # upstream, whose iterator began with the previous sampler
        iterator._iterator = iter(iterator._dataloader)
        loop.dataloader_iterator = chain(repeat(None, loop.iter), iterator)


def _validation_is_due(runner, between: bool) -> bool:
    """Return whether a validation follows the last iteration.

    ``between`` tells whether the checkpoint was written between two epochs.
    """
    loop = runner.train_loop
    if runner.message_hub.get_info('validated') == loop.iter:
        return False
    done, last = loop.iter, loop.max_iters
    if not isinstance(loop, IterBasedTrainLoop):
        done, last = loop.epoch, loop.max_epochs
        if not between:
            return False
    loop._decide_current_val_interval()
    on_time = done % loop.val_interval == 0 or done == last
    return bool(runner.val_loop) and done >= loop.val_begin and on_time
