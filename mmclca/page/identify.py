# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""First tab of the page: name a photo, and show similar training photos.

The texts are written for readers without knowledge of networks.
:mod:`.identify_layout` shows them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from mmclca.apis.answers import BETWEEN
from mmclca.errors import Error
from mmclca.evaluation.open_set import NEAREST, Threshold
from mmclca.utils.messages import join_first

from .handlers import shown_problems
from .loaded_model import LoadedModel, ModelVersion, SimilarPhoto, load_version
from .markdown import escape_markdown
from .photos import make_preview, read_photo
from .prediction import Prediction, classify
from .uploads import resolve_upload

MAX_NAMES = 6  # classes of a set


class SeenPhoto(NamedTuple):
    """Photo of the first tab, for the second one.

    Args:
        model (LoadedModel): The model.
        packed (dict): Its input for the model, of ``inferencer.prepare``.
    """

    model: LoadedModel
    packed: dict


@dataclass(frozen=True)
class Answer:
    """Values of the tab for a photo.

    Args:
        preview (Image.Image): The photo.
        seen (SeenPhoto): Model and input.
        verdict (str): Why the class may be unknown, in Markdown.
        guarantee (str): Classes that may be right, in Markdown; empty if
            nothing is guaranteed.
        prediction (Prediction): Scores of the classes.
        similar (list[SimilarPhoto] | None): Similar training photos; None
            until they are found.
    """

    preview: Image.Image
    seen: SeenPhoto
    verdict: str
    guarantee: str
    prediction: Prediction
    similar: list[SimilarPhoto] | None = None


class IdentifyTab:
    """Event handlers for the tab, with a model unless each visitor chooses it.

    They read photos in ``uploads`` only.
    """

    def __init__(self, uploads: str | Path, model: LoadedModel | None = None):
        self.uploads, self.model = Path(uploads).resolve(), model

    def find_model(self, version: ModelVersion | None) -> LoadedModel | None:
        """Return the page's model, or the one chosen in the form."""
        return self.model or (load_version(version) if version else None)

    def require_model(self, version: ModelVersion | None) -> LoadedModel:
        """Return the model; raise an ``Error`` without any."""
        model = self.find_model(version)
        if model is None:
            raise Error('There is no model yet. Please train one.')
        return model

    def identify(
        self, upload: object, version: ModelVersion | None = None
    ) -> Iterator[Answer | None]:
        """Yield the answer to a photo, first without similar photos.

        If the photo cannot be used, warn and yield None.
        """
        answer = None
        with shown_problems():
            answer = self._name_photo(upload, version)
        yield answer
        if answer is None:
            return
        seen = answer.seen
        similar = seen.model.find_similar(seen.packed['inputs'])
        yield replace(answer, similar=similar)

    def _name_photo(
        self, upload: object, version: ModelVersion | None
    ) -> Answer:
        model = self.require_model(version)
        image = read_photo(resolve_upload(upload, self.uploads))
        packed = model.inferencer.prepare(image)
        if isinstance(packed, str):
            raise Error(f'The model cannot use this photo: {packed}')
        prediction = classify(model.inferencer, packed)
        return Answer(
            make_preview(Image.fromarray(image[..., ::-1])),
            SeenPhoto(model, packed),
            describe_unknown(prediction, model.inferencer.threshold),
            describe_set(model, prediction),
            prediction,
        )


def describe_unknown(
    prediction: Prediction, threshold: Threshold | None
) -> str:
    """Describe a photo of an unknown class, else return an empty text."""
    if threshold is None or prediction.is_known in (None, True):
        return ''
    score = 'Score'
    if threshold.score == NEAREST:
        score = 'Similarity to the training photos'
    nearest = escape_markdown(next(iter(prediction.scores)))
    return (
        '### This photo may show none of the known classes\nNearest class: '
        f'**{nearest}**. {score} {prediction.known_score:.3f}, below '
        f'the threshold {threshold.threshold:.3f}.'
    )


def describe_set(model: LoadedModel, prediction: Prediction) -> str:
    """Name the classes that may be right; empty if nothing is guaranteed."""
    rule = model.set_rule
    if rule is None:
        return ''
    classes = model.inferencer.classes
    answer = rule.answer(prediction.probabilities, classes)
    names = answer['sure_set']
    joined = join_first(names, MAX_NAMES, ' or ')
    if answer['sure_answer'] != BETWEEN.join(names):
        joined = f'{answer["sure_answer"]} ({joined})'
    return f'With {rule.level:g}% guarantee: {escape_markdown(joined)}'
