# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load hook of classifiers for the loaders of MMEngine, MMPretrain and torch.

These call it with the weights of a file, and report what does not fit in the
log only. So the hook refuses whatever would leave a trained model random.
"""

from functools import cache

from mmpretrain.models.classifiers import BaseClassifier
from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

from mmclca.checkpoints.checkpoint import unwrap_in_place
from mmclca.checkpoints.linear_head import fit_linear_head, refuse_unnamed
from mmclca.checkpoints.load import ReleaseBackbone
from mmclca.checkpoints.rename import list_names

# parts of a classifier next to its backbone
PARTS = ('neck.', 'head.', 'data_preprocessor.', 'distill.')


@cache
def watch_classifiers() -> None:
    """Make each classifier with a backbone of this package load releases.

    MMPretrain's ``ImageClassifier`` shows its head to no load hook of its
    backbone. So torch is asked once to report each new part of a module, and
    :func:`_load_release` is added when a backbone joins a classifier.
    """
    register_module_module_registration_hook(_add_load_hook)


def _add_load_hook(
    classifier: nn.Module, name: str, part: nn.Module | None
) -> None:
    """Add the load hook to a classifier that gets a backbone."""
    if name != 'backbone' or not isinstance(classifier, BaseClassifier):
        return
    hooks = classifier._load_state_dict_pre_hooks.values()
    is_new = all(hook.hook is not _load_release for hook in hooks)
    if is_new and isinstance(part, ReleaseBackbone):
        classifier._register_load_state_dict_pre_hook(
            _load_release, with_module=True
        )


def _load_release(
    classifier: BaseClassifier, state_dict: dict, prefix: str, *_
) -> None:
    """Rename weights of a release, including those of the head.

    Raises:
        CheckpointError: If no parameter of the backbone is in the weights,
            or a classifier that fits the head has an unknown name.
    """
    backbone = classifier.backbone
    if not isinstance(backbone, ReleaseBackbone):
        return  # replaced since
    unwrap_in_place(state_dict)
    file_names = list_names(state_dict, prefix)
    backbone.rename_state_dict(state_dict, prefix)
    names = list_names(state_dict, prefix)
    if names and all(name.startswith(PARTS) for name in names):
        backbone.check_part(names)
    elif not any(name.startswith('backbone.') for name in names):
        mismatches = backbone.list_mismatches({}, '')
        raise backbone.refuse_weights('the weights', file_names, mismatches)
    if classifier.with_head:
        fit_linear_head(classifier.head, state_dict, f'{prefix}head.')
        refuse_unnamed(classifier.head, state_dict, prefix)
