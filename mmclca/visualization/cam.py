# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from mmclca.models import Reducible
from mmclca.models.reduction.tokens import Tokens

from .cam_methods import METHODS, OF_COMPONENT, first_component, method_named
from .patch_maps import share_out
from .recording import grid_of, recording


@torch.enable_grad()
def class_activation_maps(
    model: nn.Module,
    images: Tensor,
    categories: Sequence[int] | None = None,
    layer: int = -1,
    method: str = 'gradcam',
    eigen_smooth: bool = False,
) -> Tensor:
    """Class activation maps of a layer's tokens, over the patches.

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
        method (str): One of ``cam_methods.METHODS``, in any case. Defaults
            to 'gradcam'.
        eigen_smooth (bool): Whether to take the first principal component
            of what channels add in place of its sum. Defaults to False.

    Returns:
        Tensor: Maps (B, h, w), not normalized; 0 and more.

    Raises:
        ValueError: If the tokens of the backbone cannot be followed, there
            is no such layer or method, or a class for each image is not
            given.
    """
    method = method_named(method)
    copied = recording(model)
    backbone, layers = copied.backbone, copied.backbone.layers
    if not -len(layers) <= layer < len(layers):
        raise ValueError(
            f'layer={layer} is not there: the backbone has the layers 0 to '
            f'{len(layers) - 1}'
        )
    normalized = _kept_of(backbone, layers[layer])
    scores = copied(images, mode='tensor')
    chosen = _chosen(scores, categories)
    total = scores.gather(1, chosen[:, None]).sum()
    (x,) = normalized
    (grad,) = torch.autograd.grad(total, x)
    entered = backbone.reducer.layers[layer].entered
    maps = map_of(x, grad, entered, method, eigen_smooth)
    return maps.unflatten(1, grid_of(backbone, images))


def _kept_of(backbone: Reducible, layer: nn.Module) -> list[Tensor]:
    """What is to hold the normalized tokens of a layer after a pass."""
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
            f'categories={list(categories)} for {images} images: give a '
            f'class for each, 0 to {classes - 1}'
        )
    return torch.tensor(categories, device=scores.device)


@torch.inference_mode()
def weights_by_layer(model: nn.Module, images: Tensor) -> list[Tensor]:
    """What the tokens that each layer reads stand for.

    Args:
        model (nn.Module): As for :func:`class_activation_maps`.
        images (Tensor): Preprocessed images, (B, 3, H, W).

    Returns:
        list[Tensor]: Weights (B, N, P) of the patches in each token, one a
        layer.
    """
    copied = recording(model)
    copied(images, mode='tensor')
    layers = copied.backbone.reducer.layers
    return [layer.entered.patch_weights for layer in layers]


@torch.no_grad()
def map_of(
    x: Tensor, grad: Tensor, tokens: Tokens, method: str, eigen_smooth: bool
) -> Tensor:
    """Maps over the patches; see :func:`class_activation_maps`.

    Args:
        x (Tensor): Features of the tokens, (B, N, C).
        grad (Tensor): Gradient of the class score in them, (B, N, C).
        tokens (Tokens): The sequence; its trace is read.
        method (str): One of ``METHODS``.
        eigen_smooth (bool): Whether to take the first principal component.

    Returns:
        Tensor: (B, P).
    """
    weights = tokens.patch_weights.to(x)
    total = weights.sum(dim=-1, keepdim=True)  # (B, N, 1)
    stands = (total > 0).to(x)
    number = stands.sum(dim=1, keepdim=True).clamp(min=1)
    parts = METHODS[method](stands * x, stands * grad, number)
    if eigen_smooth or method in OF_COMPONENT:
        cam = first_component(parts, stands)
    else:
        cam = parts.sum(dim=-1, keepdim=True)
    return share_out(cam.relu().squeeze(-1), weights)


def smoothed_maps(model: nn.Module, images: Tensor, **options) -> Tensor:
    """Mean of the maps of six views of the images: as they are and mirrored,
    each at 0.9, 1 and 1.1 times its values (``aug_smooth`` of ``grad-cam``).

    Args:
        model (nn.Module): As for :func:`class_activation_maps`.
        images (Tensor): Preprocessed images, (B, 3, H, W).
        **options: Further arguments of :func:`class_activation_maps`.

    Returns:
        Tensor: Maps (B, h, w).
    """
    look, maps = partial(class_activation_maps, model, **options), []
    for factor in (0.9, 1.0, 1.1):
        view = images * factor
        maps += [look(view), look(view.flip(-1)).flip(-1)]
    return torch.stack(maps).mean(dim=0)
