# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Class activation maps of tokens, in the places of their patches."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from mmclca.models import Reducible
from mmclca.models.recording import grid_of, recording_copy, share_out
from mmclca.models.reduction.tokens import Tokens
from mmclca.utils.messages import integer, one_of

# keeps a quotient of sums finite
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
    """Map what speaks for a class in the tokens of a layer, by patch.

    `Grad-CAM: Visual Explanations from Deep Networks via Gradient-based
    Localization`, section 3: channels are summed with the mean gradient of
    the class score as their weight, and what is negative is cut off. The
    tokens are those that the attention of the layer reads, normalized
    (:meth:`Reducible.normalize`); the mean is over those that stand for
    patches. What a token has is handed on to its patches in proportion to
    their weights in it: patches that are fused or merged share it, dropped
    ones get nothing. CLS, registers and cached tokens have no place in the
    image. Where nothing is
    reduced this is Grad-CAM of the patches. The model is used in its present
    mode; call ``eval()`` first.

    Args:
        model (nn.Module): A classifier over a :class:`Reducible`
            backbone or a plain ViT.
        images (Tensor): Preprocessed images, (B, 3, H, W).
        categories (Sequence[int], optional): The class to explain of each
            image. Defaults to None: the one that the model predicts.
        layer (int): Layer from 0, or from the last, -1. Defaults to -1.
        method (str): One of ``CAM_METHODS``, in any case. Defaults to
            'gradcam'.
        eigen_smooth (bool): Whether to take the first principal component
            of what channels add in place of its sum. Defaults to False.

    Returns:
        Tensor: Maps (B, h, w), not normalized; 0 and more.

    Raises:
        ValueError: If the tokens of the backbone cannot be followed, there
            is no such layer or method, or a class for each image is not
            given.
    """
    method = method.lower()
    one_of(CAM_METHODS, method=method)
    copied = recording_copy(model)
    backbone, layers = copied.backbone, copied.backbone.layers
    integer(-len(layers), len(layers) - 1, layer=layer)
    normalized = _record_normalized(backbone, layers[layer])
    scores = copied(images, mode='tensor')
    chosen = _chosen(scores, categories)
    total = scores.gather(1, chosen[:, None]).sum()
    (x,) = normalized
    (grad,) = torch.autograd.grad(total, x)
    entered = backbone.recorder.layers[layer].entered
    maps = token_maps(x, grad, entered, method, eigen_smooth)
    return maps.unflatten(1, grid_of(backbone, images))


def _record_normalized(backbone: Reducible, layer: nn.Module) -> list[Tensor]:
    """Give what will hold the normalized tokens of a layer after a pass."""
    kept, normalize = [], backbone.normalize

    def keep(module, x):
        x = normalize(module, x)
        if module is layer:
            x.requires_grad_()  # where all parameters before it are frozen
            kept.append(x)
        return x

    backbone.normalize = keep
    return kept


def _chosen(scores: Tensor, categories: Sequence[int] | None) -> Tensor:
    if categories is None:
        return scores.argmax(dim=1)
    images, classes = scores.shape
    inside = all(0 <= category < classes for category in categories)
    if len(categories) != images or not inside:
        raise ValueError(
            f'categories={list(categories)}: expected one class per image '
            f'({images} images, classes 0 to {classes - 1})'
        )
    return torch.tensor(categories, device=scores.device)


@torch.inference_mode()
def weights_per_layer(model: nn.Module, images: Tensor) -> list[Tensor]:
    """Find the weights (B, N, P) of the patches in what each layer reads."""
    copied = recording_copy(model)
    copied(images, mode='tensor')
    layers = copied.backbone.recorder.layers
    return [layer.entered.patch_weights for layer in layers]


@torch.no_grad()
def token_maps(
    x: Tensor, grad: Tensor, tokens: Tokens, method: str, eigen_smooth: bool
) -> Tensor:
    """Map features of tokens, (B, N, C), and gradients in them, to (B, P)."""
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
    """Average the maps of six views of images: as they are and mirrored,
    each at 0.9, 1 and 1.1 times its values (``aug_smooth`` of ``grad-cam``).

    Arguments and result are those of :func:`class_activation_maps`.
    """
    look, maps = partial(class_activation_maps, model, **options), []
    for factor in (0.9, 1.0, 1.1):
        view = images * factor
        maps += [look(view), look(view.flip(-1)).flip(-1)]
    return torch.stack(maps).mean(dim=0)


# What each channel of each token adds to a map. All take features and
# gradients of the class score in them, (B, N, C), in which rows of tokens that
# stand for no patch are zero, and the number of the others, (B, 1, 1). The
# names are those of the package grad-cam.


def grad_cam_plus_plus(x: Tensor, grad: Tensor, number: Tensor) -> Tensor:
    """`Grad-CAM++: Generalized Gradient-based Visual Explanations for Deep
    Convolutional Networks`, eqs. 5 and 19."""
    total = x.sum(dim=1, keepdim=True)
    share = grad**2 / (2 * grad**2 + total * grad**3 + EPS)
    weight = (share * grad.relu()).sum(dim=1, keepdim=True)
    return weight * x


def x_grad_cam(x: Tensor, grad: Tensor, number: Tensor) -> Tensor:
    """`Axiom-based Grad-CAM: Towards Accurate Visualization and Explanation
    of CNNs`, eq. 8: gradients are averaged with the features as weights."""
    total = x.sum(dim=1, keepdim=True)
    return (grad * x).sum(dim=1, keepdim=True) / (total + EPS) * x


CAM_METHODS = {
    # `Grad-CAM: Visual Explanations from Deep Networks via Gradient-based
    # Localization`, section 3: the weight of a channel is its mean gradient
    'gradcam': lambda x, grad, number: grad.sum(1, keepdim=True) / number * x,
    'gradcam++': grad_cam_plus_plus,
    'xgradcam': x_grad_cam,
    # `LayerCAM: Exploring Hierarchical Class Activation Maps for
    # Localization`, eq. 6: each place has its own positive gradient
    'layercam': lambda x, grad, number: grad.relu() * x,
    # `Use HiResCAM instead of Grad-CAM for faithful explanations of
    # convolutional neural networks`, section 3.2
    'hirescam': lambda x, grad, number: grad * x,
    # `Eigen-CAM: Class Activation Map using Principal Components`: of the
    # features alone, for any class
    'eigencam': lambda x, grad, number: x,
    'eigengradcam': lambda x, grad, number: grad * x,
}
# take the first principal component in place of the sum over channels
EIGEN_METHODS = ('eigencam', 'eigengradcam')


def first_component(parts: Tensor, stands: Tensor) -> Tensor:
    """Place each token on the first principal axis of its image, (B, N, 1).

    The axis points to where the sum over channels grows; of itself it has no
    direction. ``parts`` are those of the map, (B, N, C); a token counts where
    ``stands`` is 1, else it is 0, (B, N, 1).
    """
    number = stands.sum(dim=1, keepdim=True).clamp(min=1)
    mean = (parts * stands).sum(dim=1, keepdim=True) / number
    centred = (parts - mean) * stands
    axis = torch.linalg.svd(centred, full_matrices=False).Vh[:, :1]
    place = (centred * axis).sum(dim=-1, keepdim=True)
    total = centred.sum(dim=-1, keepdim=True)
    return place * (place * total).sum(dim=1, keepdim=True).sign()
