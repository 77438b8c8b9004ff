# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmengine.hooks import Hook
from mmengine.runner import BaseLoop

from mmclca.models import DistilledClassifier, Grafit
from mmclca.registry import HOOKS
from mmclca.utils.wrappers import inner_model

NAMELESS = (
    'The {0} set has no class names, so that their number cannot be compared '
    'with model.head.num_classes; name them with '
    '`{0}_dataloader.dataset.classes=FILE` (one name a line).'
)


@HOOKS.register_module()
class ClassCountHook(Hook):
    """Stop before weights are fetched where data and head disagree.

    It compares the number of class names that each data set gives with
    ``model.head.num_classes``. Training checks the validation set too, which
    would otherwise fail only after the first epoch. A data set without class
    names is let through with a warning. A teacher is prepared for the
    training, and must have the same classes by name.
    """

    priority = 'VERY_HIGH'

    def before_run(self, runner):
        """Check the data sets of the loops that are about to run.

        Weights are loaded, and fetched, only after that.

        Args:
            runner (Runner): The runner.

        Raises:
            ValueError: If a set has another number of classes than the head,
                or a teacher others.
        """
        model = inner_model(runner.model)
        # the properties of their names would build those that do not run
        loops = dict(
            train=runner._train_loop,
            val=runner._val_loop,
            test=runner._test_loop,
        )
        counts = {}
        for name, loop in loops.items():
            if isinstance(loop, BaseLoop):
                # None in the stand-in that MMPretrain's vis_scheduler has
                metainfo = loop.dataloader.dataset.metainfo or {}
                if metainfo.get('classes') is None:
                    runner.logger.warning(NAMELESS.format(name))
                else:
                    counts[name] = len(metainfo['classes'])
        if counts:  # vis_scheduler's model has no head, either
            inside = '' if isinstance(model, Grafit) else 'head.'
            setting = f'model.{inside}num_classes'
            _check(model.head.num_classes, counts, setting)
        if isinstance(loops['train'], BaseLoop):
            _check_teacher(model, loops['train'].dataloader.dataset.metainfo)


def _check_teacher(model, metainfo: dict | None) -> None:
    for part in model.modules():  # LoRA may be around it
        if isinstance(part, DistilledClassifier) and part.teacher:
            part.teacher.prepare(part)
            part.teacher.match_names((metainfo or {}).get('classes'))


def _check(expected: int, counts: dict[str, int], setting: str) -> None:
    count, *others = set(counts.values())
    if {expected} != {count, *others}:
        found = [f'{n} in the {name} set' for name, n in counts.items()]
        fix = 'give all sets the same list of classes'
        if not others:
            fix = f'add `--cfg-options {setting}={count}`'
        raise ValueError(
            f'{setting} is {expected}, but the classes are '
            f'{", ".join(found)}: {fix}.'
        )
