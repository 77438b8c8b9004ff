# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load hook of classifiers for the loaders of MMEngine, MMPretrain and torch.

These call it with the weights of a file, and report what does not fit in the
log only. So the hook refuses whatever would leave a trained model random.
"""

import re

from mmpretrain.models.classifiers import ImageClassifier

from mmclca.checkpoints.checkpoint import unwrap_in_place
from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.linear_head import fit_linear_head, refuse_unnamed
from mmclca.checkpoints.load import ReleaseBackbone
from mmclca.checkpoints.rename import list_names

from ..pretrained import use_safe_initializer

# parts of a classifier next to its backbone
PARTS = ('neck.', 'head.', 'data_preprocessor.', 'distill.')


def rename_on_load(classifier: ImageClassifier) -> None:
    """Register the load hook that renames weights for a classifier.

    It replaces the hook of mmpretrain's class, which does not know the head;
    other backbones have none. An ``init_cfg`` with a checkpoint is loaded by
    :class:`.Pretrained`.
    """
    classifier.init_cfg = use_safe_initializer(classifier.init_cfg)
    if isinstance(classifier.backbone, ReleaseBackbone):
        classifier._load_state_dict_pre_hooks.clear()
        classifier._register_load_state_dict_pre_hook(
            _load_release, with_module=True
        )


def _load_release(
    classifier: ImageClassifier, state_dict: dict, prefix: str, *_
) -> None:
    """Rename weights of a release, including those of the head.

    Raises:
        CheckpointError: If no parameter of the backbone is in the weights,
            or a classifier that fits the head has an unknown name.
    """
    rename_encoder(classifier.backbone, state_dict, prefix)
    if classifier.with_head:
        fit_linear_head(classifier.head, state_dict, f'{prefix}head.')
        refuse_unnamed(classifier.head, state_dict, prefix)


def rename_without_head(
    backbone: ReleaseBackbone, state_dict: dict, prefix: str
) -> None:
    """Rename weights of a release for a classifier with an unknown head.

    Raises:
        CheckpointError: If no parameter of the backbone is in the weights,
            or they contain a classifier of a release.
    """
    names = {*list_names(state_dict, prefix)}
    rename_encoder(backbone, state_dict, prefix)
    renamed = {*list_names(state_dict, prefix)} - names
    heads = [
        name
        for name in renamed
        if name.startswith('head.') and not _is_known(name, names)
    ]
    if heads:
        raise CheckpointError(
            f'the weights contain a classifier ({min(heads)}), whose name '
            "depends on the head, which MMPretrain's ImageClassifier does not "
            "show; set type='mmclca.DistilledClassifier' in the model config, "
            'load the file with mmclca.checkpoints.load.load(model, FILE), or '
            'remove the classifier from the file to train a new one'
        )


def _is_known(name: str, names: set[str]) -> bool:
    """Return whether a renamed parameter only lost a prefix."""
    pattern = re.compile(rf'(.*\.)?{re.escape(name)}')
    return any(map(pattern.fullmatch, names))


def rename_encoder(
    backbone: ReleaseBackbone, state_dict: dict, prefix: str
) -> None:
    """Rename weights for a classifier, in place, and refuse unknown ones."""
    unwrap_in_place(state_dict)
    file_names = list_names(state_dict, prefix)
    backbone.rename_state_dict(state_dict, prefix)
    names = list_names(state_dict, prefix)
    is_part = names and all(name.startswith(PARTS) for name in names)
    if not is_part and not any(x.startswith('backbone.') for x in names):
        mismatches = backbone.list_mismatches({}, '')
        raise backbone.refuse_weights('the weights', file_names, mismatches)
