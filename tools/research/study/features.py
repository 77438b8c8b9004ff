# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Features by network and dataset, stored in a file each.

A killed program continues with the first missing file.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from frozen import DEPTH, KEPT, read_dataset

from mmclca.fitting.plan import CROP_ZOOMS
from mmclca.models.recording import shallow_copy
from mmclca.utils.files import replace_file

from .early_layers import NUM_EARLY, is_equal_after, record_early, skip_early
from .networks import Network
from .pixels import BATCH, load_pixels, normalize, save_array
from .similarity import LayerKeys, correlate_layers, record_keys

NUM_COMPARED = 32  # photos per dataset, to compare layers


@dataclass(frozen=True)
class Stored:
    """Content: features and comparisons.

    Args:
        features (ndarray): Normalized input features for all
            photos, (N, D), float16.
        is_random (bool): Whether a forward pass uses random numbers.
        correlations (ndarray): Keys and CLS attention, with the full
            network, by layer, (2, 12). Defaults to NaN, not compared.
    """

    features: np.ndarray
    is_random: bool
    correlations: np.ndarray = field(
        default_factory=lambda: np.full((2, DEPTH), np.nan)
    )


def find_file(network, name):
    """Return the path for a network and a dataset."""
    return KEPT / 'features' / network.name / f'{name}.npz'


def find_crops(network, name):
    """Return the path for crops from training photos, (N, V, D)."""
    return KEPT / 'features' / network.name / f'{name}_crops.npy'


def load_features(network, name):
    """Return :class:`Stored` for a network and a dataset."""
    with np.load(find_file(network, name)) as values:
        return Stored(
            values['features'],
            bool(values['is_random']),
            values['correlations'],
        )


@dataclass
class Extraction:
    """Extract features, dataset by dataset."""

    network: Network
    skips: bool | None = field(default=None, init=False)

    @cached_property
    def model(self):
        """The whole network."""
        return self.network.build()

    @cached_property
    def later(self):
        """The network from the first reduction on."""
        model = shallow_copy(self.model)
        skip_early(model.backbone)
        return model

    @property
    def full(self):
        """The full network with which it is compared."""
        return Network(self.network.file)

    def extract(self, name):
        """Write the features for a dataset."""
        network, paths = self.network, [*read_dataset(name).path]
        pixels = load_pixels(KEPT / 'pixels', name, paths, network)
        if network == self.full and network.is_vit:
            stored = self._extract_full(name, pixels)
        elif network.method and network.img_size == self.full.img_size:
            stored = self._extract_reduced(name, pixels)
        else:
            stored = Stored(*self._run(self.model, pixels))
        file = find_file(network, name)
        replace_file(file, lambda part: save_arrays(part, vars(stored)))

    def extract_crops(self, name):
        """Write the features for crops from the training photos."""
        dataset = read_dataset(name)
        paths = [*dataset.path[dataset.split == 'train']]
        folder, features = KEPT / 'pixels', []
        for zoom in CROP_ZOOMS:
            pixels = load_pixels(folder, name, paths, self.network, zoom)
            features.append(self._run(self.model, pixels)[0])
        crops = np.stack(features, axis=1)
        file = find_crops(self.network, name)
        replace_file(file, lambda part: save_array(part, crops))

    def _run(self, model, inputs):
        """Return features, and whether the network uses random numbers."""
        torch.manual_seed(0)
        before = torch.get_rng_state()
        features = [
            model.head.pre_logits(model.backbone(prepare(model, part)))
            for part in split(inputs)
        ]
        is_random = not torch.equal(before, torch.get_rng_state())
        return torch.cat(features).half().numpy(), is_random

    def _extract_full(self, name, pixels):
        """Also store what is compared with reduced networks."""
        model = shallow_copy(self.model)
        outputs = record_early(model.backbone)
        features, is_random = self._run(model, pixels)
        early = np.concatenate(outputs)
        file = find_early(self.network, name)
        replace_file(file, lambda part: save_array(part, early))
        photos = prepare(model, pixels[choose_compared(len(pixels))])
        layers = record_keys(self.model.backbone, photos)
        arrays = {
            f'{part}{number}': vars(layer)[part].numpy()
            for number, layer in enumerate(layers)
            for part in ('keys', 'attention')
        }
        file = find_keys(self.network, name)
        replace_file(file, lambda part: save_arrays(part, arrays))
        return Stored(features, is_random)

    def _extract_reduced(self, name, pixels):
        """Start with tokens from the full network, if they are equal."""
        early = np.load(find_early(self.full, name), mmap_mode='r')
        if self.skips is None:
            images = prepare(self.model, pixels[:BATCH])
            tokens = prepare(self.later, early[:BATCH])
            self.skips = is_equal_after(self.model, images, tokens, self.later)
        model = self.later if self.skips else self.model
        inputs = early if self.skips else pixels
        features, is_random = self._run(model, inputs)
        if self.skips:
            width = NUM_EARLY * features.shape[1] // DEPTH
            full = load_features(self.full, name).features
            features[:, :width] = full[:, :width]
        photos = prepare(model, inputs[choose_compared(len(inputs))])
        torch.manual_seed(0)
        layers = record_keys(model.backbone, photos)
        correlations = correlate_layers(layers, load_keys(self.full, name))
        return Stored(features, is_random, correlations)


def split(inputs):
    """Yield batches."""
    for start in range(0, len(inputs), BATCH):
        yield inputs[start : start + BATCH]


def prepare(model, inputs):
    """Return pixels, normalized, or tokens as model input."""
    if inputs.dtype == np.uint8:
        return normalize(model, inputs)
    return torch.from_numpy(np.array(inputs))


def choose_compared(number):
    """Return evenly spaced positions."""
    return np.arange(number)[:: max(1, number // NUM_COMPARED)][:NUM_COMPARED]


def find_early(network, name):
    """Return the path for early tokens."""
    return KEPT / 'early' / network.network / f'{name}.npy'


def find_keys(network, name):
    """Return the path for keys and attention."""
    return KEPT / 'keys' / network.network / f'{name}.npz'


def load_keys(network, name):
    """Return the :class:`LayerKeys` by layer."""
    with np.load(find_keys(network, name)) as arrays:
        tensors = {x: torch.from_numpy(arrays[x]) for x in arrays}
    return [
        LayerKeys(tensors[f'keys{i}'], tensors[f'attention{i}'], None)
        for i in range(DEPTH)
    ]


def save_arrays(path, arrays):
    """Write arrays to exactly this path."""
    with open(path, 'wb') as file:
        np.savez(file, **arrays)
