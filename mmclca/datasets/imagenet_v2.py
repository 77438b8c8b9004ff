# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from pathlib import Path

from mmpretrain.datasets import ImageNet

from mmclca.registry import DATASETS


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
                f'no images found in {root}/0 to {root}/999; unpack '
                'ImageNet-V2 (matched-frequency) there'
            )
        return images
