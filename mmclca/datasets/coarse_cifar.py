# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pickle
from pathlib import Path

from mmpretrain.datasets import CIFAR100

from mmclca.registry import DATASETS
from mmclca.utils.files import read_bytes
from mmclca.utils.messages import one_of


@DATASETS.register_module()
class CoarseCIFAR100(CIFAR100):
    """CIFAR-100 with its 20 coarse labels.

    Those of the 100 classes are kept as ``fine_label``.

    Args:
        **settings: Of mmpretrain's ``CIFAR100``.

    Raises:
        ValueError: If the file has no coarse labels.
    """

    meta = dict(CIFAR100.meta, key='coarse_label_names')
    METAINFO = {}  # the names are in the files

    def load_data_list(self) -> list[dict]:
        """List the images."""
        images = super().load_data_list()
        file = Path(self.data_prefix['root'], self.base_folder, self.split)
        entry = pickle.loads(read_bytes(file), encoding='latin1')
        one_of(entry, key='coarse_labels')
        for image, coarse in zip(images, entry['coarse_labels'], strict=True):
            image.update(fine_label=image['gt_label'], gt_label=int(coarse))
        return images
