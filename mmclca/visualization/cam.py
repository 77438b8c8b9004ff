# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Class activation maps (CAM) from tokens, mapped to their patches."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.models import Reducible
from mmclca.models.recording import (
    Recorder,
    grid_of,
    recording_copy,
    share_out,
)
from mmclca.models.reduced.transformers_vit import with_tensors
from mmclca.models.reduction.tokens import Tokens
from mmclca.utils.messages import check_choice, check_integer

# keeps quotients finite
EPS = 1e-8


@torch.enable_grad()
def class_activation_maps(
    model: nn.Module,
    images: Tensor,
    categories: Sequence[int] | None = None,
    layer: int = -1,
    method: str = 'gradcam',
    eigen_smooth: bool = False,
) -> Tensor:
    """Compute class activation maps per patch from the tokens in a layer.

    `Grad-CAM: Visual Explanations from Deep Networks via Gradient-based
    Localization`, section 3: a weighted sum over channels, with the mean
    gradient of the class score as weight, followed by ReLU. The tokens are the
    normalized inputs of the layer's attention (:meth:`Reducible.normalize`);
    gradients are averaged over the tokens that represent patches. Each token
    distributes its value over its patches in proportion to their weights;
    dropped patches get 0. CLS, registers and cached tokens are not shown.
    Without token reduction, this is Grad-CAM of the patches. The model keeps
    its mode; call ``eval()`` first.

    Args:
        model (nn.Module): A classifier with a :class:`Reducible` backbone or a
            plain ViT.
        images (Tensor): Preprocessed images, (B, 3, H, W).
        categories (Sequence[int], optional): Class to explain per image.
            Defaults to None: the predicted class.
        layer (int): Layer from 0, or from the last, -1. Defaults to -1.
        method (str): A key of ``CAM_METHODS``, case-insensitive. Defaults to
            'gradcam'.
        eigen_smooth (bool): Whether to use the first principal component over
            channels instead of their sum. Defaults to False.

    Returns:
        Tensor: Maps (B, h, w), non-negative, not normalized.

    Raises:
        Error: If the backbone does not support recording, the layer or
            method does not exist, or there is not one class per image.
    """
    method = method.lower()
    check_choice(CAM_METHODS, method=method)
    copied = recording_copy(model)
    backbone: Reducible = copied.backbone
    recorder: Recorder = backbone.recorder
    depth = len(backbone.all_layers)
    check_integer(-depth, depth - 1, layer=layer)
    normalized = _record_normalized(backbone, backbone.all_layers[layer])
    scores = with_tensors(copied)(images)
    chosen = _targets(scores, categories)
    total = scores.gather(1, chosen[:, None]).sum()
    (x,) = normalized
    (grad,) = torch.autograd.grad(total, x)
    entered = recorder.layers[layer].entered
    maps = token_maps(x, grad, entered, method, eigen_smooth)
    return maps.unflatten(1, grid_of(backbone, images))


def _record_normalized(backbone: Reducible, layer: nn.Module) -> list[Tensor]:
    """Return a list to be filled with the normalized tokens in a layer."""
    kept = []

    def keep(normalize, module, x):
        x = normalize(module, x)
        if module is layer:
            x.requires_grad_()  # even if all earlier parameters are frozen
            kept.append(x)
        return x

    # TimmViT runs the layers of another Reducible
    for part in backbone.modules():
        if isinstance(part, Reducible):
            part.normalize = partial(keep, part.normalize)
    return kept


def _targets(scores: Tensor, categories: Sequence[int] | None) -> Tensor:
    if categories is None:
        return scores.argmax(dim=1)
    images, classes = scores.shape
    inside = all(0 <= category < classes for category in categories)
    if len(categories) != images or not inside:
        raise Error(
            f'categories={list(categories)}: expected one class per image '
            f'({images} images, classes 0 to {classes - 1})'
        )
    return torch.tensor(categories, device=scores.device)


@torch.inference_mode()
def weights_per_layer(model: nn.Module, images: Tensor) -> list[Tensor]:
    """Compute patch weights (B, N, P) in the input tokens per layer."""
    copied = recording_copy(model)
    backbone: Reducible = copied.backbone
    recorder: Recorder = backbone.recorder
    copied(images)
    return [layer.entered.patch_weights for layer in recorder.layers]


@torch.no_grad()
def token_maps(
    x: Tensor, grad: Tensor, tokens: Tokens, method: str, eigen_smooth: bool
) -> Tensor:
    """Compute maps (B, P) from token features and gradients, (B, N, C)."""
    weights = tokens.patch_weights.to(x)
    total = weights.sum(dim=-1, keepdim=True)  # (B, N, 1)
    stands = (total > 0).to(x)
    number = stands.sum(dim=1, keepdim=True).clamp(min=1)
    parts = CAM_METHODS[method](stands * x, stands * grad, number)
    if eigen_smooth or method in EIGEN_METHODS:
        cam = first_component(parts, stands)
    else:
        cam = parts.sum(dim=-1, keepdim=True)
    return share_out(cam.relu().squeeze(-1), weights)


def smoothed_maps(model: nn.Module, images: Tensor, **options) -> Tensor:
    """Average the maps for six views (``aug_smooth`` in ``grad-cam``).

    Views: original and mirrored, each scaled by 0.9, 1 and 1.1. Arguments and
    result as in :func:`class_activation_maps`.
    """
    look, maps = partial(class_activation_maps, model, **options), []
    for factor in (0.9, 1.0, 1.1):
        view = images * factor
        maps += [look(view), look(view.flip(-1)).flip(-1)]
    return torch.stack(maps).mean(dim=0)


# Contribution to a map per channel and token. The functions take
# features and their gradients (B, N, C), zero for tokens without a patch, and
# the number of tokens with a patch, (B, 1, 1). Names as in package grad-cam.


def grad_cam_plus_plus(x: Tensor, grad: Tensor, number: Tensor) -> Tensor:
    """Grad-CAM++, eqs. 5 and 19.

    `Grad-CAM++: Generalized Gradient-based Visual Explanations for Deep
    Convolutional Networks`.
    """
    total = x.sum(dim=1, keepdim=True)
    share = grad**2 / (2 * grad**2 + total * grad**3 + EPS)
    weight = (share * grad.relu()).sum(dim=1, keepdim=True)
    return weight * x


def x_grad_cam(x: Tensor, grad: Tensor, number: Tensor) -> Tensor:
    """XGrad-CAM, eq. 8: gradients averaged with the features as weights.

    `Axiom-based Grad-CAM: Towards Accurate Visualization and Explanation of
    CNNs`.
    """
    total = x.sum(dim=1, keepdim=True)
    return (grad * x).sum(dim=1, keepdim=True) / (total + EPS) * x


CAM_METHODS = {
    # `Grad-CAM: Visual Explanations from Deep Networks via Gradient-based
    # Localization`, section 3: the weight of a channel is its mean gradient
    'gradcam': lambda x, grad, number: grad.sum(1, keepdim=True) / number * x,
    'gradcam++': grad_cam_plus_plus,
    'xgradcam': x_grad_cam,
    # `LayerCAM: Exploring Hierarchical Class Activation Maps for
    # Localization`, eq. 6: positive gradient of each position
    'layercam': lambda x, grad, number: grad.relu() * x,
    # `Use HiResCAM instead of Grad-CAM for faithful explanations of
    # convolutional neural networks`, section 3.2
    'hirescam': lambda x, grad, number: grad * x,
    # `Eigen-CAM: Class Activation Map using Principal Components`: features
    # only, equal for all classes
    'eigencam': lambda x, grad, number: x,
    'eigengradcam': lambda x, grad, number: grad * x,
}
# use the first principal component instead of the sum over channels
EIGEN_METHODS = ('eigencam', 'eigengradcam')


def first_component(parts: Tensor, stands: Tensor) -> Tensor:
    """Project each token on the first principal axis of its image, (B, N, 1).

    ``parts`` (B, N, C) are the summands for the map; only tokens with
    ``stands`` = 1 (B, N, 1) are used. The sign of the axis is chosen so that
    projections correlate with the sum over channels.
    """
    number = stands.sum(dim=1, keepdim=True).clamp(min=1)
    mean = (parts * stands).sum(dim=1, keepdim=True) / number
    centered = (parts - mean) * stands
    axis = torch.linalg.svd(centered, full_matrices=False).Vh[:, :1]
    projection = (centered * axis).sum(dim=-1, keepdim=True)
    total = centered.sum(dim=-1, keepdim=True)
    return projection * (projection * total).sum(dim=1, keepdim=True).sign()
