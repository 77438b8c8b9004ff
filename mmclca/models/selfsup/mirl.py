# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""MIRL: what its decoders learn, and the model that joins the parts."""

import torch
import torch.nn.functional as F
from mmpretrain.models.heads import MAEPretrainHead
from mmpretrain.models.selfsup import MAE
from torch import Tensor

from mmclca.registry import MODELS
from mmclca.utils.messages import integer, number, one_of

PIXELS = dict(type='PixelReconstructionLoss', criterion='L2')
MOST = 63  # side of a filter, whose response is found on 64 x 64
MODES = ('residual', 'multi_decoder', 'coarse2fine', 'fine2coarse')


def laplacian_of_gaussian(sigma: float, size: int) -> Tensor:
    """Return a Laplacian of Gaussian, (size, size), that keeps fine detail.

    With a positive centre, a sum of zero, and the largest response of any
    frequency 1.
    """
    at = torch.arange(size) - (size - 1) / 2
    scaled = (at[:, None] ** 2 + at**2) / (2 * sigma**2)
    kernel = (1 - scaled) * torch.exp(-scaled)
    kernel = kernel - kernel.mean()
    return kernel / torch.fft.fft2(kernel, (64, 64)).abs().max()


@MODELS.register_module()
class MIRLHead(MAEPretrainHead):
    """Losses of MIRL's decoders, on pixels normalized patch by patch.

    `Masked Image Residual Learning for Scaling Deeper Vision Transformers
    <https://arxiv.org/abs/2309.14136>`_, section 3.1, equations 6 and 7: the
    prediction of segment g, the main part, and that of segment G - g + 1,
    the residual, are added. Section 4.2 compares it with the other modes. All
    losses are divided by their number, so that they add up to their mean.

    Args:
        mode (str): 'residual', a loss a pair of segments; 'multi_decoder',
            each decoder predicts the whole target; 'coarse2fine', the
            shallow half predicts the coarse part of the image and the deep
            half the fine part, which add up to the target; 'fine2coarse',
            the other way round. Defaults to 'residual'.
        sigma (float): Standard deviation in pixels of the Laplacian of
            Gaussian that finds the fine part. The paper does not say it.
            Defaults to 1.
        size (int): Side of that filter in pixels, odd, 3 to 63. Likewise.
            Defaults to 7.
        patch_size (int): Side of a patch in pixels; ``MIRL`` fills it in.

    Raises:
        ValueError: If there is no such mode, or no such filter.
    """

    def __init__(
        self,
        mode: str = 'residual',
        sigma: float = 1.0,
        size: int = 7,
        *,
        patch_size: int,
    ):
        one_of(MODES, mode=mode)
        number(least=0.1, sigma=sigma)
        integer(least=3, most=MOST, size=size)
        if size % 2 == 0:
            raise ValueError(f'size={size} must be odd, such as 7')
        super().__init__(PIXELS, norm_pix=True, patch_size=patch_size)
        self.mode = mode
        log = laplacian_of_gaussian(sigma, size)
        self.register_buffer('log', log, persistent=False)

    def loss(
        self, preds: list[Tensor], images: Tensor, mask: Tensor
    ) -> dict[str, Tensor]:
        """Compute the losses by name; they add up to the total.

        Args:
            preds (list[Tensor]): A prediction a segment, (B, N, P * P * 3).
            images (Tensor): (B, 3, H, W).
            mask (Tensor): 1 for a patch that is masked, (B, N).
        """
        parts = self.parts(preds, images)
        kind = 'pair' if self.mode == 'residual' else 'decoder'
        return {
            f'loss_{kind}{i}': self.loss_module(*part, mask) / len(parts)
            for i, part in enumerate(parts, start=1)
        }

    def parts(
        self, preds: list[Tensor], images: Tensor
    ) -> list[tuple[Tensor, Tensor]]:
        """Give what is predicted, and its target, both (B, N, P * P * 3)."""
        halves = [self.construct_target(images)] * 2
        if self.mode == 'residual':
            preds = add_residuals(preds)
        elif self.mode in MODES[2:]:
            fine = self.fine_part(images)
            halves = [halves[0] - fine, fine]
        if self.mode == 'fine2coarse':
            halves.reverse()
        half = len(preds) // 2
        return [(p, halves[i >= half]) for i, p in enumerate(preds)]

    def fine_part(self, images: Tensor) -> Tensor:
        """Filter images; scaled as their patches are, (B, N, P * P * 3)."""
        kernel = self.log.to(images).expand(images.size(1), 1, -1, -1)
        padding = (self.log.size(0) // 2,) * 4
        padded = F.pad(images, padding, mode='reflect')
        fine = F.conv2d(padded, kernel, groups=images.size(1))
        variance = self.patchify(images).var(dim=-1, keepdim=True)
        return self.patchify(fine) / (variance + 1e-6) ** 0.5


def add_residuals(preds: list[Tensor]) -> list[Tensor]:
    """Add each deep prediction to its shallow one; of one, itself."""
    pairs = range(len(preds) // 2)
    return [preds[i] + preds[-1 - i] for i in pairs] or preds


@MODELS.register_module()
class MIRL(MAE):
    """Masked image residual learning.

    `Masked Image Residual Learning for Scaling Deeper Vision Transformers
    <https://arxiv.org/abs/2309.14136>`_. Of one segment, without DID and
    weight normalization, it is ``MAE``.

    Args:
        backbone (dict): Config of a :class:`SegmentedMAEViT`.
        neck (dict): Config of :class:`MIRLDecoders`; the encoder is filled
            in.
        head (dict): Config of a :class:`MIRLHead`; its patches are.
        **kwargs: ``data_preprocessor``, ``pretrained`` and ``init_cfg`` of
            ``MAE``.

    Raises:
        ValueError: If bands are to be predicted by a single segment.
    """

    def __init__(self, backbone: dict, neck: dict, head: dict, **kwargs):
        encoder = MODELS.build(backbone)
        patch_size = encoder.patch_size
        head = MODELS.build(head, default_args=dict(patch_size=patch_size))
        if encoder.num_segments == 1 and head.mode in MODES[2:]:
            raise ValueError(
                f'mode={head.mode!r} needs a shallow and a deep half; set '
                'num_segments=2 or more'
            )
        neck = MODELS.build(neck, default_args=dict(encoder=encoder))
        super().__init__(encoder, neck, head, **kwargs)

    def loss(self, inputs: Tensor, data_samples=None, **kwargs) -> dict:
        """Compute the losses by name, which add up to the total.

        Args:
            inputs (Tensor): Images (B, 3, H, W).
            data_samples (list[DataSample], optional): Not used.
        """
        preds, mask = self.predict_pixels(inputs)
        return self.head.loss(preds, inputs, mask)

    def predict_pixels(self, inputs: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return what the decoders make of images, and the mask."""
        seen = self.backbone.encode(inputs)
        segments = [*self.backbone.segments(seen)[:-1], seen.left]
        return self.neck(segments, seen.ids_restore), seen.mask
