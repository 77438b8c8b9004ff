# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmengine.hooks import Hook
from mmengine.runner import BaseLoop

from mmclca.registry import HOOKS
from mmclca.utils.wrappers import inner_model


@HOOKS.register_module()
class ClassCountHook(Hook):
    """Stop before weights are fetched where data and head disagree.

    It compares the number of class names that each data set gives with
    ``model.head.num_classes``. Training checks the validation set too, which
    would otherwise fail only after the first epoch. A data set without class
    names is let through with a warning.
    """

    priority = 'VERY_HIGH'

    def before_run(self, runner):
        """Check the data sets of the loops that are about to run.

        Weights are loaded, and fetched, only after that.

        Args:
            runner (Runner): The runner.

        Raises:
            ValueError: If a set has another number of classes than the head.
        """
        # the properties of their names would build those that do not run
        loops = dict(
            train=runner._train_loop,
            val=runner._val_loop,
            test=runner._test_loop,
        )
        counts = {
            name: _count(loop.dataloader.dataset, name, runner.logger)
            for name, loop in loops.items()
            if isinstance(loop, BaseLoop)
        }
        counts = {name: n for name, n in counts.items() if n is not None}
        if not counts:  # vis_scheduler's model has no head, either
            return
        expected = inner_model(runner.model).head.num_classes
        if set(counts.values()) - {expected}:
            raise ValueError(_message(expected, counts))


def _count(dataset, name, logger):
    # of the stand-in that MMPretrain's vis_scheduler has, metainfo is None
    classes = (dataset.metainfo or {}).get('classes')
    if classes is None:
        logger.warning(
            f'The {name} set has no class names, so that their number cannot '
            'be compared with model.head.num_classes; name them with '
            f'`{name}_dataloader.dataset.classes=FILE` (one name a line).'
        )
        return None
    return len(classes)


def _message(expected, counts):
    found = ', '.join(f'{n} in the {name} set' for name, n in counts.items())
    message = f'model.head.num_classes is {expected}, but the classes are '
    count, *others = set(counts.values())
    if not others:
        fix = f'add `--cfg-options model.head.num_classes={count}`'
    else:
        fix = 'give all sets the same list of classes'
    return f'{message}{found}: {fix}.'
