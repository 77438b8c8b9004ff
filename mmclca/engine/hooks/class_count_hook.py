# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmengine.runner import BaseLoop
from mmpretrain.evaluation import Accuracy

from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.gate.stored_config import read_stored_classes
from mmclca.datasets.class_folders import check_folder_labels
from mmclca.datasets.photos.spellings import normalize_name
from mmclca.errors import Error
from mmclca.models import DistilledClassifier, LoRAModel
from mmclca.models.selfsup import Grafit
from mmclca.registry import HOOKS
from mmclca.utils.messages import join_first
from mmclca.utils.wrappers import inner_model

from .complete_weights_hook import CompleteWeightsHook

NO_CLASS_NAMES = (
    'The {0} set has no class names, so their number cannot be compared with '
    'model.head.num_classes; set `{0}_dataloader.dataset.classes=FILE` (one '
    'name per line).'
)
SETS = ('train', 'val', 'test')


@HOOKS.register_module()
class ClassCountHook(CompleteWeightsHook):
    """Stop before the first iteration if data, head and weights disagree.

    All datasets, and a tested or resumed checkpoint, must have the
    same class names in the same order, and ``model.head.num_classes`` names.
    Training also checks the validation dataset, which would otherwise fail
    only after the first epoch. A dataset without class names only causes a
    warning. A teacher is prepared for training and must have the same class
    names. As in :class:`CompleteWeightsHook`, a tested checkpoint must have
    all parameters of the model.
    """

    loops, names = {}, {}

    def before_run(self, runner):
        """Check the datasets before weights are downloaded or loaded.

        Raises an Error if the datasets have different classes or no
        batch, or if the head, a metric or a teacher does not match them.
        """
        # private attributes: the properties would build unused loops
        loops = {x: vars(runner)[f'_{x}_loop'] for x in SETS}
        built = (x for x in SETS if isinstance(loops[x], BaseLoop))
        self.loops = {x: loops[x] for x in built}
        self.names = {}
        for name, loop in self.loops.items():
            # metainfo is None in the mock dataset of vis_scheduler
            classes = (loop.dataloader.dataset.metainfo or {}).get('classes')
            if classes is None:
                runner.logger.warning(NO_CLASS_NAMES.format(name))
            else:
                self.names[f'the {name} set'] = tuple(
                    normalize_name(x) for x in classes
                )
        _check_names(self.names)
        # a local checkpoint is checked after loading instead
        if 'train' in self.loops or '://' in (runner._load_from or '://'):
            self._check_model(runner)
        if 'train' in self.loops:
            metainfo = loops['train'].dataloader.dataset.metainfo
            _check_teacher(inner_model(runner.model), metainfo)

    def after_load_checkpoint(self, runner, checkpoint):
        """Compare a tested or resumed checkpoint with the datasets.

        Raises an Error if the classes differ, if a resumed checkpoint
        contains only weights, or if a tested one lacks parameters.
        """
        if 'train' in self.loops and not runner._resume:
            return
        opened = Checkpoint.from_contents(checkpoint, 'the checkpoint')
        if stored := read_stored_classes(opened):
            stored = tuple(normalize_name(x) for x in stored)
            _check_names({'the checkpoint': stored, **self.names})
        self._check_model(runner)
        if runner._resume and 'epoch' not in (checkpoint.get('meta') or {}):
            raise Error(
                'only weights found; use load_from=FILE without `resume`'
            )
        super().after_load_checkpoint(runner, checkpoint)

    def _check_model(self, runner) -> None:
        """Compare the head and the metrics with the datasets."""
        model = inner_model(runner.model)
        model = model.module if isinstance(model, LoRAModel) else model
        if 'head' not in dict(model.named_children()):
            return  # the mock model of MMPretrain's vis_scheduler
        if not hasattr(model.head, 'num_classes'):
            return  # of another package, which may not store it
        number, counts = model.head.num_classes, map(len, self.names.values())
        count = next(counts, number)
        if number != count:
            inside = '' if isinstance(model, Grafit) else 'head.'
            setting = f'model.{inside}num_classes'
            datasets = ', '.join(f'{count} classes in {x}' for x in self.names)
            raise Error(
                f'{setting} is {number}, but there are {datasets}; set '
                f'`{setting}={count}`'
            )
        for name, loop in self.loops.items():
            _check_loop(name, loop, model)


def _check_names(named: dict[str, tuple]) -> None:
    """Raise if class names or their order differ."""
    first, expected = next(iter(named.items()), ('', ()))
    for other, names in named.items():
        if names == expected:
            continue
        only = {
            first: [name for name in expected if name not in names],
            other: [name for name in names if name not in expected],
        }
        said = [f'only {k} has {join_first(v)}' for k, v in only.items() if v]
        sets = [x for x in SETS if f'the {x} set' in named]
        options = [f'`{x}_dataloader.dataset.classes=FILE`' for x in sets]
        raise Error(
            f'the classes of {first} and {other} differ: '
            f'{", ".join(said) or "their order"}; rename or remove class '
            'folders, or list all classes in a file, one per line, and set '
            f'{" ".join(options)}'
        )


def _check_loop(name: str, loop: BaseLoop, model) -> None:
    """Raise if data or metrics would fail later in the run."""
    dataset = loop.dataloader.dataset
    if len(loop.dataloader) == 0:
        raise Error(
            f'{name}_dataloader has no batches: with drop_last, batch_size '
            'must not exceed the number of images'
        )
    check_folder_labels(dataset, model.head)
    metrics = [] if name == 'train' else loop.evaluator.metrics
    for metric in (x for x in metrics if isinstance(x, Accuracy)):
        if not all(0 < k <= model.head.num_classes for k in metric.topk):
            raise Error(
                f'{name}_evaluator.topk={metric.topk} must be within 1 and '
                f'{model.head.num_classes}, the number of classes'
            )


def _check_teacher(model, metainfo: dict | None) -> None:
    for part in model.modules():  # LoRA may wrap the classifier
        if isinstance(part, DistilledClassifier) and part.teacher:
            teacher = part.teacher
            teacher.prepare(part)
            teacher.match_names((metainfo or {}).get('classes'))
