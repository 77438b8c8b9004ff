# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load photos in the pipelines of configs."""

from mmcv.transforms import BaseTransform

from mmclca.registry import TRANSFORMS

from .decoding import read_bgr


@TRANSFORMS.register_module()
class LoadPhoto(BaseTransform):
    """Load a photo from its file.

    Replaces ``LoadImageFromFile``: the pixels are equal except for alpha
    channels, blended with white, and 10- to 14-bit values, scaled by their
    range. Further formats are HEIC (with pi-heif), AVIF and GIF.
    """

    def transform(self, results: dict) -> dict:
        """Add the image to a sample.

        Args:
            results (dict): A sample with ``img_path``.

        Returns:
            dict: The sample with ``img`` (H, W, 3), BGR, uint8, ``img_shape``
            and ``ori_shape``.

        Raises:
            OSError: If the file cannot be read.
            UndecodedError: If the image cannot be decoded; names the file.
        """
        image = read_bgr(results['img_path'])
        shape = image.shape[:2]
        return dict(results, img=image, img_shape=shape, ori_shape=shape)

    def __repr__(self):
        return f'{type(self).__name__}()'
