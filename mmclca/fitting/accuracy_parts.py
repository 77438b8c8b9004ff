# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parts of a fit's record about its accuracy.

Screen, report and page show their descriptions.
"""

from dataclasses import dataclass

from mmclca.languages import text

from .wording import count_photos, interval, out_of_hundred, percent


@dataclass(frozen=True)
class AccuracyDescription:
    """Description of an accuracy, for screen, report and page.

    Args:
        summary (str): Accuracy with its interval.
        plain (str): The same in a sentence without statistics; empty if it
            was not measured.
        method (tuple[str, ...]): Tested photos and method, one fact per line.
        explanation (str): The method in a sentence, for the report.
    """

    summary: str
    plain: str
    method: tuple[str, ...]
    explanation: str


def describe_accuracy(
    accuracy: float | None, low: float | None, high: float | None
) -> str:
    """Describe an accuracy with its interval."""
    return text(
        'model.accuracy', share=percent(accuracy), interval=interval(low, high)
    )


def describe_plainly(
    accuracy: float | None, low: float | None, high: float | None
) -> str:
    """Describe an accuracy as a number out of 100; empty without one."""
    if accuracy is None:
        return ''
    number = out_of_hundred(accuracy)
    if low is None or high is None:
        return text('model.names', number=number)
    return text(
        'model.names_between',
        number=number,
        low=out_of_hundred(low),
        high=out_of_hundred(high),
    )


@dataclass(frozen=True)
class Measurement:
    """Accuracy on ``n`` photos not used for training.

    ``low`` to ``high`` is its 95% interval.
    """

    n: int
    accuracy: float
    low: float
    high: float

    def describe(self) -> AccuracyDescription:
        """Describe the accuracy on photos in val and test folders."""
        return AccuracyDescription(
            describe_accuracy(self.accuracy, self.low, self.high),
            describe_plainly(self.accuracy, self.low, self.high),
            (text('model.on_test', photos=count_photos(self.n)),),
            text('model.test_explained'),
        )


@dataclass(frozen=True)
class FinetuneVal(Measurement):
    """Accuracies on held-out photos: fine-tuned model, and probe before."""

    probe_accuracy: float

    def describe(self) -> AccuracyDescription:
        """Describe the accuracy on photos held out from fine-tuning."""
        return AccuracyDescription(
            describe_accuracy(self.accuracy, self.low, self.high),
            describe_plainly(self.accuracy, self.low, self.high),
            (text('model.on_held_out', photos=count_photos(self.n)),),
            text('model.held_out_explained'),
        )


@dataclass(frozen=True)
class ClassRecall:
    """Recall of a class with ``n`` photos; None if it was not tested.

    ``low`` to ``high`` is its 95% interval.
    """

    n: int
    recall: float | None = None
    low: float | None = None
    high: float | None = None

    def describe(self) -> str:
        """Describe the recall with its interval."""
        return percent(self.recall) + interval(self.low, self.high)


@dataclass(frozen=True)
class Estimate:
    """Linear probe: its settings, and its accuracy by cross-validation.

    The accuracy, its 95% interval and the macro recall are None if no photo
    could be tested.

    Args:
        classifier (str): Name of the classifier.
        alpha (float): Regularization strength.
        late_cls_weight (float): Weight of the second feature subset.
        temperature (float): Divisor of the scores.
        folds (int): Number of folds; 0 if no photo could be tested.
        repeats (int): Number of repeats.
        accuracy (float, optional): Mean accuracy over repeats.
        low (float, optional): Lower bound of its interval.
        high (float, optional): Upper bound.
        macro_recall (float, optional): Mean recall over tested classes.
        per_class (dict[str, ClassRecall]): Recall per class.
        seconds (float): Duration.
    """

    classifier: str
    alpha: float
    late_cls_weight: float
    temperature: float
    folds: int
    repeats: int
    accuracy: float | None
    low: float | None
    high: float | None
    macro_recall: float | None
    per_class: dict[str, ClassRecall]
    seconds: float

    def describe(self) -> AccuracyDescription:
        """Describe the accuracy, the tested photos and cross-validation."""
        return AccuracyDescription(
            describe_accuracy(self.accuracy, self.low, self.high),
            describe_plainly(self.accuracy, self.low, self.high),
            self._describe_method() if self.folds else (),
            text('model.folds_explained'),
        )

    def _describe_method(self) -> tuple[str, ...]:
        recalls = self.per_class.values()
        tested = [x.n for x in recalls if x.recall is not None]
        photos = text('model.on_photos', photos=count_photos(sum(tested)))
        if len(tested) < len(recalls):
            photos = text(
                'model.on_photos_of_classes',
                photos=count_photos(sum(tested)),
                tested=len(tested),
                classes=len(recalls),
            )
        return (
            text(
                'model.folds',
                photos=photos,
                folds=self.folds,
                repeats=self.repeats,
            ),
            text('model.fold_size', share=f'{1 - 1 / self.folds:.0%}'),
        )


@dataclass(frozen=True)
class Training:
    """Fine-tuning.

    Args:
        epochs (int): Number of epochs.
        seconds (float): Duration.
        finetune_val (FinetuneVal, optional): Accuracy on the photos held out,
            None with too few photos to report it.
    """

    epochs: int
    seconds: float
    finetune_val: FinetuneVal | None

    def describe(self, is_kept: bool) -> str:
        """Describe the result.

        Args:
            is_kept (bool): Whether the fine-tuned model was kept.
        """
        return describe_fine_tuning(is_kept, self.finetune_val)


def describe_fine_tuning(
    is_kept: bool, finetune_val: FinetuneVal | None
) -> str:
    """Describe the held-out accuracy before and after fine-tuning."""
    result = text('model.training_kept' if is_kept else 'model.training_lost')
    if finetune_val is None:
        return text('model.training_unreported', result=result)
    return text(
        'model.training',
        result=result,
        before=percent(finetune_val.probe_accuracy),
        after=percent(finetune_val.accuracy),
        photos=count_photos(finetune_val.n),
    )
