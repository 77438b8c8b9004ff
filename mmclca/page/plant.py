# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Photos of a plant, identified by a visitor."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mmclca.apis.answers import BETWEEN, Answers
from mmclca.apis.plants import combine_results
from mmclca.evaluation.open_set import NEAREST, Threshold
from mmclca.languages import text
from mmclca.utils.messages import join_first

from .loaded_model import SURE, LoadedModel
from .markdown import escape_markdown
from .prediction import Prediction, predict_photo

MAX_NAMES = 6  # classes of a set
MIN_CLASSES = 2  # fewer chosen classes are none


@dataclass(frozen=True)
class SeenPlant:
    """Classified photos of a plant.

    Args:
        model (LoadedModel): The model.
        packed (dict): Input for the last photo, of ``inferencer.prepare``.
        results (tuple[dict, ...]): Results for the photos, among all classes.
    """

    model: LoadedModel
    packed: dict
    results: tuple[dict, ...] = ()

    def add(self, packed: dict) -> 'SeenPlant':
        """Classify a further photo."""
        result = predict_photo(self.model.inferencer, packed)
        return replace(self, packed=packed, results=(*self.results, result))

    def answer(self, among: Sequence[str] = ()) -> 'PlantAnswer':
        """Combine the results for the photos.

        Args:
            among (Sequence[str]): Classes that can occur. Defaults to (): all,
                also if there is only one.
        """
        model, inferencer = self.model, self.model.inferencer
        classes, is_single = inferencer.classes, len(self.results) == 1
        chosen = [i for i, name in enumerate(classes) if name in among]
        labels = chosen if len(chosen) >= MIN_CLASSES else None
        # sets are calibrated for single photos
        rule = model.find_rule(labels) if is_single else None
        answers = Answers(classes, labels, rule)
        results = [*map(answers.apply, self.results)]
        if not is_single:
            results = combine_results(
                results,
                ['plant'] * len(results),
                classes,
                model.dependence,
                inferencer.threshold,
            )
        (result,) = results
        prediction = Prediction.from_result(result, classes)
        return PlantAnswer(
            prediction=prediction,
            count=describe_photo_count(len(self.results)),
            unknown=describe_unknown(
                prediction, inferencer.threshold, len(self.results)
            ),
            guarantee=describe_set(result),
        )


@dataclass(frozen=True)
class PlantAnswer:
    """Answer for a plant; texts are Markdown, and may be empty.

    Args:
        prediction (Prediction): Scores of the classes.
        count (str): Number of photos, if several.
        unknown (str): Why the class may be unknown.
        guarantee (str): Classes that may be right.
    """

    prediction: Prediction
    count: str
    unknown: str
    guarantee: str

    @property
    def verdict(self) -> str:
        """All texts."""
        texts = [self.count, self.unknown, self.guarantee]
        return '\n\n'.join(filter(None, texts))


def describe_photo_count(number: int) -> str:
    """Name the number of photos of a plant; empty for one."""
    if number == 1:
        return ''
    return text('page.plant.photos', number=number)


def describe_unknown(
    prediction: Prediction, threshold: Threshold | None, number: int = 1
) -> str:
    """Describe photos flagged as unknown, else return an empty text."""
    if threshold is None or prediction.is_known in (None, True):
        return ''
    kind = 'similarity' if threshold.score == NEAREST else 'score'
    heading = text('page.plant.unknown', number=number)
    nearest = text(
        'page.plant.nearest',
        name=escape_markdown(next(iter(prediction.scores))),
        score=text(f'page.plant.{kind}', number=number),
        value=f'{prediction.known_score:.3f}',
        threshold=f'{threshold.threshold:.3f}',
    )
    return f'{heading}\n{nearest}'


def describe_set(result: dict) -> str:
    """Name the classes that may be right; empty if nothing is guaranteed."""
    if 'sure_set' not in result:
        return ''
    names = result['sure_set']
    joined = join_first(names, MAX_NAMES, text('page.plant.or'))
    answer = result['sure_answer']
    if answer != BETWEEN.join(names):
        joined = text('page.plant.set_of', name=answer, names=joined)
    key = 'page.plant.guarantee'
    if result['known'] is False:  # nothing is guaranteed for other classes
        key = 'page.plant.guarantee_if_known'
    return text(key, level=SURE, names=escape_markdown(joined))
