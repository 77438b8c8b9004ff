# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import compress
from os import PathLike

import numpy as np
import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmpretrain import ImageClassificationInferencer
from mmpretrain.structures import DataSample

from mmclca.checkpoints.model_folder import find_threshold_file
from mmclca.datasets.batches import Batch, Preparation, batches, read_image
from mmclca.datasets.image_files import find_images
from mmclca.errors import Error
from mmclca.evaluation.open_set import (
    SIMILARITIES,
    read_threshold,
    recording_scores,
    set_known,
)
from mmclca.utils.messages import printable, track

from .loading import check_class_number, load_classifier
from .token_statistics import MacCounts, check_tokens, predict_with_statistics

PREDICTION = ('pred_class', 'pred_score', 'known', 'known_score')
TOKEN_STATISTICS = ('tokens', 'gmacs', 'kept', 'attribution', 'cls_attention')


def show_inference(batches: Sequence) -> Iterator:
    """Iterate over batches with a progress bar."""
    return iter(track(batches, description='Inference'))


class TokenReductionInferencer(ImageClassificationInferencer):
    """Classify images, with statistics of their tokens.

    mmpretrain's inferencer for any mmpretrain classifier, on files, folders
    and glob patterns. Unreadable images do not stop it, and the result of an
    image does not depend on the other images of its batch. Class names come
    from ``classes``, else the checkpoint, else the test dataset of the config;
    without names, labels are used. Images are prepared by the pipeline of that
    dataset.

    Args:
        model (str | Path | Config | BaseModel | None): A fitted model folder;
            a checkpoint (``.pth``, ``.safetensors``) that contains its config,
            as training and ``publish_model.py`` write it; a config, its path
            or its name; or a built model of ``mmpretrain.get_model``. None:
            the config in ``pretrained``.
        pretrained (str, optional): Path or URL of the weights, if ``model``
            lacks them. Defaults to None.
        device (str | torch.device, optional): Device. Defaults to None: the
            device of a built model, else a GPU if available.
        classes (Sequence[str], optional): Class names. Defaults to None.
        threshold (str | Path, optional): File of ``tools/open_set.py`` with
            the score threshold below which an image is flagged as unknown.
            Defaults to None: the threshold of a model folder, else none.
        options (dict): Config settings to override. Defaults to {}.

    Raises:
        FileNotFoundError: If the file ``threshold`` does not exist.
        Error: If weights or parameters are missing, the config lacks the
            model or test dataset, the number of names differs from the classes
            of the head, or ``threshold`` belongs to another model.

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
        threshold: str | PathLike | None = None,
        options: dict = {},
    ):
        path = model if pretrained is None else pretrained
        if threshold is None and isinstance(path, str | PathLike):
            threshold = find_threshold_file(path)
        classifier = load_classifier(model, pretrained, options, device)
        names = classifier._dataset_meta['classes']
        if classes is not None:
            check_class_number(
                classes, classifier.head.num_classes, 'classes='
            )
        super().__init__(classifier, pretrained=None, classes=classes or names)
        self.threshold = None
        if threshold is not None:
            self.threshold = read_threshold(threshold, self.model)

    @cached_property
    def _macs(self) -> MacCounts:
        return MacCounts(self.model)

    def __call__(
        self,
        inputs,
        return_datasamples: bool = False,
        batch_size: int = 32,
        **kwargs,
    ) -> list:
        """Classify images.

        Args:
            inputs (str | Path | np.ndarray | Image | bytes | Iterable):
                Files, URLs, folders (searched recursively), patterns such as
                ``'scans/*.tif'``, BGR arrays (H, W, 3), uint8, Pillow images,
                file contents and open binary files, or an iterable over them.
            return_datasamples (bool): Whether to return a ``DataSample`` per
                image instead of a dict. Defaults to False.
            batch_size (int): Images per batch. Defaults to 32.
            return_tokens (bool): Whether to add token statistics, for a
                :class:`Reducible` backbone or a plain ViT. Defaults to False.
            **kwargs: ``show``, ``show_dir`` and so on, as in mmpretrain.

        Returns:
            list[dict]: One dict per image, in input order with repetitions:

            - ``image``: path, or position among the images;
            - ``error``: why the image is unreadable; nothing else follows;
            - ``pred_label``, ``pred_score``, ``pred_class``: the best class;
            - ``pred_scores`` (np.ndarray): scores of all classes;
            - ``known`` (bool): whether the class is known, by ``threshold``;
              None without it;
            - ``known_score`` (float): score compared with the threshold, high
              for known classes; None without ``threshold``.

            Added by ``return_tokens``:

            - ``tokens`` (list[int]): tokens after each layer, before tokens
              are restored from the cache, including CLS and cached tokens;
              with ATS without padding;
            - ``gmacs`` (float): 1e9 multiply-accumulates for this image,
              counted like ``get_flops.py``;
            - ``kept`` (list[np.ndarray]): per stage the share of each patch
              that one token still carries, (h, w): 1 for a patch with its own
              token, 0 for a dropped patch;
            - ``cls_attention`` (np.ndarray): attention of CLS in the last
              layer, averaged over heads, to the token with the largest weight
              of each patch, (h, w), 0 for a dropped patch;
            - ``attribution`` (np.ndarray): the same attention, distributed
              from each token to its patches by their weights, (h, w), scaled
              to a sum of 1; all zero if no token represents a patch.

            Unreadable images are also listed in a warning.
        """
        _, forward, visualize, _ = self._dispatch_kwargs(**kwargs)
        sources = find_images(inputs)
        samples = list(self._samples(sources, batch_size, **forward))
        is_readable = ['error' not in sample for sample in samples]
        unreadable = [
            printable(f'  {sample.image}: {sample.error}')
            for sample in samples
            if 'error' in sample
        ]
        if unreadable:
            lines = '\n'.join(['unreadable:', *unreadable])
            warnings.warn(lines, stacklevel=2)
        if visualize and any(is_readable):
            # mmpretrain draws paths and arrays
            images = [
                source if isinstance(source, str) else read_image(source)
                for source in compress(sources, is_readable)
            ]
            predictions = [*compress(samples, is_readable)]
            self.visualize(images, predictions, **visualize)
        return self.postprocess(samples, None, return_datasamples)

    def stream(
        self,
        inputs,
        batch_size: int = 32,
        return_tokens: bool = False,
        references: torch.Tensor | None = None,
    ) -> Iterator[dict]:
        """Yield the result of each image as soon as its batch is classified.

        Unreadable images give results with ``error``, without a warning.

        Args:
            inputs: See :meth:`__call__`.
            batch_size (int): Images per batch. Defaults to 32.
            return_tokens (bool): See :meth:`__call__`. Defaults to False.
            references (torch.Tensor, optional): Positions (R,) among the
                training images stored in the head. Adds ``similarities`` (R,),
                the cosine similarities to them. Defaults to None.

        Yields:
            dict: The result of one image.
        """
        sources = find_images(inputs)
        for sample in self._samples(
            sources, batch_size, return_tokens, references
        ):
            yield self._result(sample)

    def _init_pipeline(self, cfg: Config) -> Preparation:
        """Build the preparation of single images."""
        return Preparation(cfg)

    def _samples(
        self,
        sources: list,
        batch_size: int,
        return_tokens: bool = False,
        references: torch.Tensor | None = None,
    ) -> Iterator[DataSample]:
        """Yield predictions, with ``error`` for an unreadable image."""
        if return_tokens:
            check_tokens(self.model)
        for batch in self.batches(sources, batch_size):
            read = iter(())
            if batch.images is not None:
                data = dict(inputs=batch.images, data_samples=batch.samples)
                read = iter(self._predict(data, return_tokens, references))
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
        self,
        sources: Sequence,
        batch_size: int,
        zoom: float = 1.0,
        progress: Callable = show_inference,
    ) -> Iterator[Batch]:
        """Yield preprocessed batches; ``progress`` wraps their list."""
        prepare = partial(self.pipeline, zoom=zoom)
        return batches(
            self.model, sources, None, batch_size, prepare, progress
        )

    def prepare(self, source: str | np.ndarray) -> dict | str:
        """Apply the pipeline to an image, or return why it is unreadable."""
        return self.pipeline(source)

    def forward(
        self, inputs: dict, return_tokens: bool = False
    ) -> list[DataSample]:
        """Classify a batch.

        Args:
            inputs (dict): Collated outputs of the pipeline.
            return_tokens (bool): See :meth:`__call__`. Defaults to False.
        """
        data = self.model.data_preprocessor(inputs, False)
        return self._predict(data, return_tokens)

    @torch.no_grad()
    def _predict(
        self,
        data: dict,
        return_tokens: bool,
        references: torch.Tensor | None = None,
    ) -> list[DataSample]:
        """Classify preprocessed images."""
        head = self.model.head
        names = () if self.threshold is None else (self.threshold.score,)
        with recording_scores(head, names, references) as recorded:
            if return_tokens:
                samples = predict_with_statistics(self.model, self._macs, data)
            else:
                samples = self.model(**data, mode='predict')
        check_finite(torch.stack([sample.pred_score for sample in samples]))
        if self.threshold is not None:
            set_known(samples, recorded[0], self.threshold)
        if references is not None:
            rows = recorded[0][SIMILARITIES].numpy()
            for sample, row in zip(samples, rows, strict=True):
                sample.set_field(row, SIMILARITIES)
        return samples

    def postprocess(
        self,
        preds: list[DataSample],
        visualization,
        return_datasamples: bool = False,
    ) -> list:
        """Convert predictions to results, see :meth:`__call__`."""
        if return_datasamples:
            return preds
        return [self._result(sample) for sample in preds]

    def _result(self, sample: DataSample) -> dict:
        if 'error' in sample:
            return dict(image=sample.image, error=sample.error)
        (result,) = super().postprocess([sample], None)
        for name in ('known', 'known_score'):
            result[name] = sample.get(name)
        for name in (*TOKEN_STATISTICS, SIMILARITIES):
            if name in sample:
                result[name] = sample.get(name)
        return dict(image=sample.image) | result


def get_prediction(result: dict) -> dict:
    """Return the prediction for an image: best class, and whether it is known.

    Keys: ``pred_class``, ``pred_score`` (its probability), ``known`` and
    ``known_score`` (both None without a threshold). Empty for an unreadable
    image.
    """
    return {name: result[name] for name in PREDICTION if name in result}


def check_finite(numbers: torch.Tensor) -> None:
    """Raise an Error if model outputs (B, K) are not finite."""
    broken = int((~numbers.isfinite()).any(dim=1).sum())
    if broken:
        raise Error(
            f'model output: NaN or infinite for {broken} of {len(numbers)} '
            'images (damaged weights or diverged training); use another '
            'checkpoint'
        )
