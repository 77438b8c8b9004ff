# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Other tests of models for ImageNet-1k: ReaL labels, and ImageNet-V2."""

import re
from pathlib import Path

from mmengine import load
from mmpretrain.datasets import ImageNet

from mmclca.registry import DATASETS

NUMBER = re.compile(r'(\d{8})\.\w+$')


@DATASETS.register_module()
class ImageNetReaL(ImageNet):
    """ImageNet's validation images with all labels that fit each.

    `Are we done with ImageNet?`: images without a label are left out.

    Args:
        labels (str): ``real.json``: for each image, in the order of the
            numbers in their names, a list of labels.
        **settings: ``data_root``, ``pipeline`` and others of mmpretrain's
            ``ImageNet``.

    Raises:
        ValueError: If there are no labels for an image.
    """

    def __init__(self, labels: str, **settings):
        self.labels = labels
        super().__init__(split='val', **settings)

    def load_data_list(self) -> list[dict]:
        """List the images that have labels."""
        of_image, images = load(self.labels), super().load_data_list()
        for image in images:
            found = NUMBER.search(image['img_path'])
            number = int(found[1]) if found else 0
            if not 1 <= number <= len(of_image):
                raise ValueError(
                    f'{self.labels} has labels of {len(of_image)} images, and '
                    f'none of {image["img_path"]}: names end with a number '
                    'of eight digits, as ILSVRC2012_val_00000001.JPEG'
                )
            image['gt_label'] = of_image[number - 1]
        return [image for image in images if image['gt_label']]


@DATASETS.register_module()
class ImageNetV2(ImageNet):
    """New images for the classes of ImageNet, a folder a label: 0 to 999.

    `Do ImageNet Classifiers Generalize to ImageNet?`.

    Args:
        data_root (str): The folder of these folders.
        **settings: ``pipeline`` and others of mmpretrain's ``ImageNet``.

    Raises:
        FileNotFoundError: If there are no images.
    """

    def load_data_list(self) -> list[dict]:
        """List the images of all labels."""
        root = Path(self.img_prefix)
        files = (
            file for file in root.glob('*/*') if file.parent.name.isdigit()
        )
        images = [
            dict(img_path=str(file), gt_label=int(file.parent.name))
            for file in sorted(files)
            if file.suffix.lower() in self.extensions
        ]
        if not images:
            raise FileNotFoundError(
                f'there are no images in {root}/0 to {root}/999: unpack '
                'ImageNet-V2 (matched-frequency) there'
            )
        return images
