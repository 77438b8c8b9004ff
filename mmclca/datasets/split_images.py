# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images of a split in a config, with their classes."""

from mmengine.config import Config

from mmclca.errors import Error

from .batches import build_dataset
from .photos import LabeledImages


def list_split_images(cfg: Config, split: str) -> LabeledImages:
    """Return the images in a split of a config.

    Args:
        cfg (Config): The config.
        split (str): 'train', 'val' or 'test'.

    Raises:
        FileNotFoundError: If its files do not exist.
        Error: If the dataset is missing or empty.
    """
    # mmengine cannot serialize a dataset without images
    dataset = build_dataset(cfg, split, pipeline=[], serialize_data=False)
    infos = [dataset.get_data_info(i) for i in range(len(dataset))]
    if not infos:
        raise Error(f'the {split} dataset of the config is empty')
    classes = dataset.metainfo.get('classes') or ()
    labels = [int(info['gt_label']) for info in infos]
    names = [classes[i] if classes else str(i) for i in labels]
    paths = [info['img_path'] for info in infos]
    return LabeledImages.from_names(paths, names, f'{split} split', classes)
