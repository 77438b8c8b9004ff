# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Name the linear classifier of a checkpoint as in the head of a model."""

from collections.abc import Mapping

from mmengine.logging import MMLogger
from torch import Tensor, nn

from .error import CheckpointError

# names of a linear classifier in the heads of this package and MMPretrain
LINEAR = ('fc.', 'layers.head.', 'head.')
HIDDEN = 'layers.pre_logits.weight'


def fit_linear_head(head: nn.Module, weights: dict, prefix: str = '') -> None:
    """Rename a linear classifier in the weights for any head, in place.

    A new classifier is logged.

    Args:
        head (nn.Module): Head of the model.
        weights (dict): Weights with the names of a classifier.
        prefix (str): Prefix of the head in ``weights``. Defaults to ''.

    Raises:
        CheckpointError: If the hidden layer before the classifier has no
            place in the head.
    """
    tensors = head.state_dict()
    if _is_matrix(tensors, 'weight'):  # PerClassHead reads a linear classifier
        tensors['fc.weight'] = tensors['weight']
    ours = next((x for x in LINEAR if _is_matrix(tensors, f'{x}weight')), None)
    stored = [x for x in LINEAR if _is_matrix(weights, f'{prefix}{x}weight')]
    if not stored:
        return
    theirs = ours if ours in stored else stored[0]
    shape = weights[f'{prefix}{theirs}weight'].shape
    if ours is not None and shape == tensors[f'{ours}weight'].shape:
        if f'{prefix}{HIDDEN}' in weights and HIDDEN not in tensors:
            raise CheckpointError(
                f'{type(head).__name__} lacks the hidden layer '
                f'{prefix}{HIDDEN} of the file, so its classes would be '
                'wrong; use VisionTransformerClsHead with hidden_dim, or '
                'remove both layers from the file to start with a new '
                'classifier'
            )
        for part in ('weight', 'bias'):
            value = weights.pop(f'{prefix}{theirs}{part}', None)
            if value is not None:
                weights[f'{prefix}{ours}{part}'] = value
    elif shape not in [value.shape for value in tensors.values()]:
        MMLogger.get_current_instance().info(
            f'the weights have a classifier of shape {tuple(shape)}, '
            f'{type(head).__name__} has none: the classifier is new, train it'
        )


def refuse_unnamed(head: nn.Module, weights: Mapping, prefix: str) -> None:
    """Raise if a new classifier of a head fits an unused one in the weights.

    Else a trained classifier would be replaced by random numbers. Only
    matrices with a row per class count, so that hidden layers of equal shape
    are not classifiers.

    Args:
        head (nn.Module): Head of the model.
        weights (Mapping): Weights with the names of a classifier.
        prefix (str): Prefix of the classifier in ``weights``.
    """
    parts = f'{prefix}backbone.', f'{prefix}neck.'
    if not any(name.startswith(parts) for name in weights):
        return  # of another architecture, which the backbone refuses
    tensors = head.state_dict(prefix=f'{prefix}head.')
    tensors.pop(f'{prefix}head.weight', None)  # see fit_linear_head
    new = {
        tensors[name].shape: name
        for name in tensors
        if _is_matrix(tensors, name) and name not in weights
    }
    if hasattr(head, 'num_classes'):
        new = {x: new[x] for x in new if x[0] == head.num_classes}
    for name, value in weights.items():
        is_unused = name not in tensors and not name.startswith(parts)
        if is_unused and _is_matrix(weights, name) and value.shape in new:
            raise CheckpointError(
                f'{name} {tuple(value.shape)} fits {type(head).__name__}, '
                f'which calls it {new[value.shape]}; rename it in the file, '
                'or remove it to start with a new classifier'
            )


def _is_matrix(tensors: Mapping, name: str) -> bool:
    """Return whether a tensor has two dimensions; False if it is missing."""
    value = tensors.get(name)
    return isinstance(value, Tensor) and value.ndim == 2
