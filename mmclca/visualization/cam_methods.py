# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What each channel of each token adds to a class activation map.

All take features and gradients of the class score in them, (B, N, C), in
which rows of tokens that stand for no patch are zero, and the number of the
others, (B, 1, 1). The names are those of the package ``grad-cam``.
"""

import torch
from torch import Tensor

# keeps a quotient of sums finite
EPS = 1e-8


def grad_cam(x: Tensor, grad: Tensor, number: Tensor) -> Tensor:
    """`Grad-CAM: Visual Explanations from Deep Networks via Gradient-based
    Localization`, section 3: a channel weighs its mean gradient."""
    return grad.sum(dim=1, keepdim=True) / number * x


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


def layer_cam(x: Tensor, grad: Tensor, number: Tensor) -> Tensor:
    """`LayerCAM: Exploring Hierarchical Class Activation Maps for
    Localization`, eq. 6: each place has its own, positive, gradient."""
    return grad.relu() * x


def hi_res_cam(x: Tensor, grad: Tensor, number: Tensor) -> Tensor:
    """`Use HiResCAM instead of Grad-CAM for faithful explanations of
    convolutional neural networks`, section 3.2."""
    return grad * x


def eigen_cam(x: Tensor, grad: Tensor, number: Tensor) -> Tensor:
    """`Eigen-CAM: Class Activation Map using Principal Components`: of the
    features alone, whatever the class."""
    return x


METHODS = {
    'gradcam': grad_cam,
    'gradcam++': grad_cam_plus_plus,
    'xgradcam': x_grad_cam,
    'layercam': layer_cam,
    'hirescam': hi_res_cam,
    'eigencam': eigen_cam,
    'eigengradcam': hi_res_cam,
}
# take the first principal component in place of the sum over channels
OF_COMPONENT = ('eigencam', 'eigengradcam')


def method_named(name: str) -> str:
    """The name in lower case.

    Raises:
        ValueError: If there is no such method.
    """
    if name.lower() not in METHODS:
        raise ValueError(
            f'there is no method {name!r}: take one of {", ".join(METHODS)}'
        )
    return name.lower()


def first_component(parts: Tensor, stands: Tensor) -> Tensor:
    """Place of each token on the first principal axis of an image.

    The axis points to where the sum over channels grows; of itself it has no
    direction.

    Args:
        parts (Tensor): Parts of the map, (B, N, C).
        stands (Tensor): Which tokens count: 1, else 0, (B, N, 1).

    Returns:
        Tensor: (B, N, 1); 0 where a token does not count.
    """
    number = stands.sum(dim=1, keepdim=True).clamp(min=1)
    mean = (parts * stands).sum(dim=1, keepdim=True) / number
    centred = (parts - mean) * stands
    axis = torch.linalg.svd(centred, full_matrices=False).Vh[:, :1]
    place = (centred * axis).sum(dim=-1, keepdim=True)
    total = centred.sum(dim=-1, keepdim=True)
    return place * (place * total).sum(dim=1, keepdim=True).sign()
