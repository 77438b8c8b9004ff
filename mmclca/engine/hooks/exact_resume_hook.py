# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmengine.dataset import InfiniteSampler
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.runner import IterBasedTrainLoop

from mmclca.datasets.seeded_batches import SeededBatches
from mmclca.registry import HOOKS
from mmclca.utils.random_state import seed_random_state


@HOOKS.register_module()
class ExactResumeHook(Hook):
    """Make a resumed run equal to an uninterrupted one.

    All random numbers of an iteration follow from the seed and the number of
    the iteration, both for its images and for the model. The number of
    workers does not matter, and checkpoints store only the seed. Inside an
    epoch, a resumed run skips the images already used. If it was stopped
    between a checkpoint and its validation, it validates first.
    """

    priority = 'LOWEST'  # after other hooks have used random numbers

    def before_train(self, runner) -> None:
        """Replace the batch sampler, and run a missing validation."""
        loader = runner.train_dataloader
        self.batches = SeededBatches(loader, runner.seed, get_rank())
        if runner.iter and _validation_is_due(runner):
            runner.val_loop.run()

    def before_val(self, runner) -> None:
        """Note the validation for the checkpoints after it."""
        runner.message_hub.update_info('validated', runner.iter)

    def before_train_epoch(self, runner) -> None:
        """Start at the first unused batch."""
        loop, passes = runner.train_loop, runner.epoch
        if isinstance(loop, IterBasedTrainLoop):
            passes = _skip_passes(loop, self.batches.sampler)
        self.batches.iter = runner.iter
        self.batches.skipped = runner.iter - passes * len(self.batches)

    def before_train_iter(self, runner, batch_idx, data_batch=None) -> None:
        """Seed the model."""
        seed_random_state(runner.seed, runner.iter)


def _skip_passes(loop: IterBasedTrainLoop, sampler) -> int:
    """Skip completed passes over the images; return their number.

    mmengine would read and discard all their images.
    """
    endless = isinstance(sampler, InfiniteSampler)
    iterator = loop.dataloader_iterator
    iterator.skip_iter = lambda iters: None
    iterator._epoch = 0 if endless else loop.iter // len(loop.dataloader)
    sampler.set_epoch(iterator._epoch)
    return iterator._epoch


def _validation_is_due(runner) -> bool:
    """Return whether a validation follows the last iteration."""
    loop = runner.train_loop
    if runner.message_hub.get_info('validated') == loop.iter:
        return False
    done, last = loop.iter, loop.max_iters
    if not isinstance(loop, IterBasedTrainLoop):
        done, last = loop.epoch, loop.max_epochs
        if loop.iter != loop.epoch * len(loop.dataloader):  # inside an epoch
            return False
    loop._decide_current_val_interval()
    on_time = done % loop.val_interval == 0 or done == last
    return bool(runner.val_loop) and done >= loop.val_begin and on_time
