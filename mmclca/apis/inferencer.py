# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from os import PathLike

import numpy as np
import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmpretrain import ImageClassificationInferencer
from mmpretrain.structures import DataSample

from mmclca.checkpoints.fitted import threshold_file
from mmclca.datasets.batches import Batch, Preparation, batches, read_image
from mmclca.datasets.image_files import find_images
from mmclca.evaluation.open_set import (
    read_threshold,
    recording_scores,
    set_known,
)
from mmclca.utils.messages import printable, track

from .loading import check_number, load_classifier
from .token_facts import MacCounts, check_tokens, predict_with_facts

PREDICTION = ('pred_class', 'pred_score', 'known', 'known_score')
FACTS = ('tokens', 'gmacs', 'kept', 'attribution', 'cls_attention')


class TokenReductionInferencer(ImageClassificationInferencer):
    """Predicts the classes of images, with statistics of their tokens.

    mmpretrain's inferencer for any of its classifiers, on files, folders and
    patterns, that goes on where an image cannot be read. The result of an
    image does not depend on the others of its batch. Names of the classes
    come from ``classes``, else the checkpoint, else the test data set of the
    config; where they are nowhere, labels stand for them. Images are prepared
    by the pipeline of that data set.

    Args:
        model (str | Path | Config | BaseModel | None): A folder that fit
            wrote, or a checkpoint (``.pth``, ``.safetensors``) that holds its
            config, as those of training and of ``publish_model.py`` do; a
            config, its path or its name; a model built by
            ``mmpretrain.get_model``, used as it is. None: the config in
            ``pretrained``.
        pretrained (str, optional): Path or URL of the weights, where
            ``model`` has none. Defaults to None.
        device (str | torch.device, optional): Where to run it. Defaults to
            None: where a built model is, else on a GPU if there is one.
        classes (Sequence[str], optional): Names of the classes.
            Defaults to None.
        reject (str | Path, optional): File of ``tools/open_set.py`` with the
            score below which an image is of no known class.
            Defaults to None: that of a folder of fit, else none.
        options (dict): Settings of the config to override. Defaults to {}.

    Raises:
        FileNotFoundError: If there is no file ``reject``.
        ValueError: If there are no weights or they miss parameters of the
            model, the config has no model or no test data set, the names
            are not as many as the classes of the head, or ``reject`` is of
            another model.

    Example:
        >>> from mmclca.apis import TokenReductionInferencer
        >>> inferencer = TokenReductionInferencer('best.pth')
        >>> result, = inferencer('leaf.jpg', return_tokens=True)
        >>> result['pred_class'], result['tokens'], result['gmacs']
    """

    forward_kwargs = {'return_tokens'}

    def __init__(
        self,
        model: str | PathLike | Config | BaseModel | None,
        pretrained: str | PathLike | None = None,
        device: str | torch.device | None = None,
        classes: Sequence[str] | None = None,
        reject: str | PathLike | None = None,
        options: dict = {},
    ):
        place = model if pretrained is None else pretrained
        if reject is None and isinstance(place, str | PathLike):
            reject = threshold_file(place)
        model = load_classifier(model, pretrained, options, device)
        names = model._dataset_meta['classes']
        if classes is not None:
            check_number(classes, model.head.num_classes, 'classes=')
        super().__init__(model, pretrained=None, classes=classes or names)
        self.threshold = None
        if reject is not None:
            self.threshold = read_threshold(reject, self.model)

    @cached_property
    def _count(self) -> MacCounts:
        return MacCounts(self.model)

    def __call__(
        self,
        inputs,
        return_datasamples: bool = False,
        batch_size: int = 32,
        **kwargs,
    ) -> list:
        """Predict images.

        Args:
            inputs (str | Path | np.ndarray | Image | bytes | Iterable):
                Files, addresses, folders (for all images below), patterns
                such as ``'scans/*.tif'``, BGR arrays (H, W, 3), uint8, images
                of Pillow, contents of files and open binary files, or a
                list, generator or the like of these.
            return_datasamples (bool): Whether to return a ``DataSample`` an
                image in place of a dict. Defaults to False.
            batch_size (int): Images at a time. Defaults to 32.
            return_tokens (bool): Whether to add statistics of tokens, with a
                :class:`Reducible` backbone or a plain ViT. Defaults to False.
            **kwargs: ``show``, ``show_dir`` and so on, as in mmpretrain.

        Returns:
            list[dict]: One for each image, in their order, repeated ones
            included:

            - ``image``: its path, or its position among the images;
            - ``error``: why it was not read, and then nothing more;
            - ``pred_label``, ``pred_score``, ``pred_class``: the best class;
            - ``pred_scores`` (np.ndarray): the scores of all classes;
            - ``known`` (bool): whether it is of a known class, by ``reject``;
              None without it;
            - ``known_score`` (float): what is compared with that threshold,
              high for known classes; None without it.

            With ``return_tokens`` besides:

            - ``tokens`` (list[int]): tokens that leave each layer, before
              what the cache puts back, CLS and cached ones included; in ATS
              those of this image, without padding;
            - ``gmacs`` (float): 1e9 multiply-accumulates spent on it, counted
              as by ``get_flops.py``;
            - ``kept`` (list[np.ndarray]): for each stage how much of each
              patch one token still carries, (h, w): 1 for a token of its
              own, 0 where it was dropped;
            - ``cls_attention`` (np.ndarray): for each patch the attention of
              CLS in the last layer, mean over heads, to the token that the
              patch mostly goes into, (h, w), 0 where it was dropped;
            - ``attribution`` (np.ndarray): the same attention, handed on by
              each token to its patches in proportion to their weights in it,
              (h, w), scaled to a sum of 1. All zero if no token stands for a
              patch any more.

            Images that were not read are also named in a warning.
        """
        _, forward, visualize, _ = self._dispatch_kwargs(**kwargs)
        sources = find_images(inputs)
        samples = list(self._samples(sources, batch_size, **forward))
        pairs = zip(sources, samples, strict=True)
        read = [pair for pair in pairs if 'error' not in pair[1]]
        _warn(sample for sample in samples if 'error' in sample)
        if read and visualize:
            shown, answers = zip(*read, strict=True)
            self.visualize([*map(_drawable, shown)], answers, **visualize)
        return self.postprocess(samples, None, return_datasamples)

    def stream(
        self, inputs, batch_size: int = 32, return_tokens: bool = False
    ) -> Iterator[dict]:
        """Yield results as a call returns them, batch by batch.

        Args:
            inputs: As for a call.
            batch_size (int): Images at a time. Defaults to 32.
            return_tokens (bool): As for a call. Defaults to False.

        Yields:
            dict: The result of an image.
        """
        sources = find_images(inputs)
        for sample in self._samples(sources, batch_size, return_tokens):
            yield self._result(sample)

    def _init_pipeline(self, cfg: Config) -> Preparation:
        """Build the preparation of an image, or why it cannot be read."""
        return Preparation(cfg)

    def _samples(
        self, sources: list, batch_size: int, return_tokens: bool = False
    ) -> Iterator[DataSample]:
        """Predictions, with ``error`` where an image cannot be read."""
        if return_tokens:
            check_tokens(self.model)
        for batch in self.batches(sources, batch_size):
            read = iter(())
            if batch.images is not None:
                data = dict(inputs=batch.images, data_samples=batch.samples)
                read = iter(self._predict(data, return_tokens))
            for position in batch.positions:
                source = sources[position]
                name = source if isinstance(source, str) else position
                if position in batch.unread:
                    error = batch.unread[position]
                    sample = DataSample(metainfo=dict(error=error))
                else:
                    sample = next(read)
                sample.set_metainfo(dict(image=name))
                yield sample

    def batches(
        self, sources: Sequence, batch_size: int, zoom: float = 1.0
    ) -> Iterator[Batch]:
        """Yield images as the model reads them, with a progress bar."""
        bar = partial(track, description='Inference')
        prepare = partial(self.pipeline, zoom=zoom)
        return batches(self.model, sources, None, batch_size, prepare, bar)

    def prepare(self, source: str | np.ndarray) -> dict | str:
        """Return an image as the model takes it, or why it is unreadable."""
        return self.pipeline(source)

    def forward(
        self, inputs: dict, return_tokens: bool = False
    ) -> list[DataSample]:
        """Predictions of a batch.

        Args:
            inputs (dict): What the pipeline made of images, collated.
            return_tokens (bool): As for a call. Defaults to False.
        """
        data = self.model.data_preprocessor(inputs, False)
        return self._predict(data, return_tokens)

    @torch.no_grad()
    def _predict(self, data: dict, return_tokens: bool) -> list[DataSample]:
        """Predictions of preprocessed images."""
        names = () if self.threshold is None else (self.threshold.score,)
        with recording_scores(self.model.head, names) as seen:
            if return_tokens:
                samples = predict_with_facts(self.model, self._count, data)
            else:
                samples = self.model(**data, mode='predict')
        check_finite(torch.stack([one.pred_score for one in samples]))
        if self.threshold is not None:
            set_known(samples, seen[0], self.threshold)
        return samples

    def postprocess(
        self,
        preds: list[DataSample],
        visualization,
        return_datasamples: bool = False,
    ) -> list:
        """Predictions as they are returned; see a call."""
        if return_datasamples:
            return preds
        return [self._result(sample) for sample in preds]

    def _result(self, sample: DataSample) -> dict:
        if 'error' in sample:
            return dict(image=sample.image, error=sample.error)
        (result,) = super().postprocess([sample], None)
        for name in ('known', 'known_score'):
            result[name] = sample.get(name)
        facts = {name: sample.get(name) for name in FACTS if name in sample}
        return dict(image=sample.image, **result, **facts)


def prediction_of(result: dict) -> dict:
    """Return the best class of an image, and whether it is of a known one.

    Returns:
        dict: ``pred_class`` and ``pred_score``, the best class and its
        probability, whatever ``known`` says: True or False, by a threshold on
        ``known_score``; both are None without one. Empty for an image that
        was not read.
    """
    return {name: result[name] for name in PREDICTION if name in result}


def check_finite(numbers: torch.Tensor) -> None:
    """Raise ValueError if outputs (B, K) of a model are not finite."""
    broken = int((~numbers.isfinite()).any(dim=1).sum())
    if broken:
        raise ValueError(
            f'model output: NaN or infinite for {broken} of {len(numbers)} '
            'images (damaged weights or diverged training); use another '
            'checkpoint'
        )


def _drawable(source) -> str | np.ndarray:
    """Return an image that mmpretrain can draw: a path or an array."""
    return source if isinstance(source, str) else read_image(source)


def _warn(unread: Iterator[DataSample]) -> None:
    lines = [printable(f'  {one.image}: {one.error}') for one in unread]
    if lines:
        warnings.warn('\n'.join(['unreadable:', *lines]), stacklevel=3)
