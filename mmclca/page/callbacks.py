# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from pathlib import Path

import cv2
import gradio as gr
import numpy as np

from mmclca.apis import TokenReductionInferencer

from . import html, strings
from .limits import read_leaf
from .prediction import predict as predict_leaf
from .shared_weights import Variants
from .speed import Speeds

PREVIEW = 1024  # pixels of the longer side of the picture shown


class Callbacks:
    """The functions behind the page; they return values of its parts.

    Args:
        inferencer (TokenReductionInferencer): The trained model.
        uploads (str | Path): Folder in which pictures arrive; none from
            elsewhere is read.

    Raises:
        ValueError: If the tokens of the backbone cannot be reduced.
    """

    def __init__(
        self, inferencer: TokenReductionInferencer, uploads: str | Path
    ):
        self.variants = Variants(inferencer)
        self.speeds = Speeds(inferencer)
        self.uploads = Path(uploads).resolve()

    def read_upload(self, upload: dict):
        """Of a new picture: a preview, the model's input, a message."""
        try:
            image = read_leaf(self._uploaded(upload['path']))
            packed = self.variants.trained.prepare(image)
            if isinstance(packed, str):
                raise ValueError(
                    f'The model cannot use this picture: {packed}'
                )
        except ValueError as error:
            message = html.problem(str(error))
            return None, None, gr.HTML(message, visible=True)
        return _preview(image), packed, gr.HTML('', visible=False)

    def _uploaded(self, path: str) -> Path:
        """A path in the folder of uploads, once links are followed."""
        # a request that no browser made may name any file of this computer,
        # and Gradio lets it pass where it leaves out "meta"
        file = Path(path).resolve()
        if not file.is_relative_to(self.uploads):
            raise ValueError(
                'This picture was not sent to this page. Please drop it here.'
            )
        return file

    def clear(self):
        """Without a picture: no input, and no message."""
        return None, gr.HTML('', visible=False)

    def select_method(self, name: str):
        """The slider of a method."""
        method = self.variants.methods[name]
        info = strings.about_keep_rate(method)
        if not method.fixed:
            return gr.Slider(interactive=True, info=info)
        return gr.Slider(value=method.keep_rate, interactive=False, info=info)

    def predict(self, packed: dict | None, method: str, keep_rate: float):
        """Classes, the leaf step by step, a note in place of costs, GMACs."""
        if packed is None:
            return *html.nothing_yet(), None
        found = predict_leaf(self.variants.at(method, keep_rate), packed)
        return (
            html.classes(found.answer, found.classes),
            html.survivors(found),
            html.costs(strings.MEASURING),
            found.gmacs,
        )

    def measure(self, packed, method: str, keep_rate: float, gmacs):
        """The cost of a leaf beside that of the model without reduction."""
        if packed is None:
            return html.nothing_yet()[-1]
        variant = self.variants.at(method, keep_rate)
        speeds = self.speeds.compare(variant, packed, gmacs)
        return html.compared(*speeds, f'{method}, keep rate {keep_rate:g}')


def _preview(image: np.ndarray) -> np.ndarray:
    """A BGR image as RGB, not too large for a browser."""
    scale = min(1.0, PREVIEW / max(image.shape[:2]))
    size = [max(1, round(scale * side)) for side in image.shape[1::-1]]
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(small[..., ::-1])
