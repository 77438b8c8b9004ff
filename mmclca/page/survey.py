# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tab that surveys new photos: draw, label, estimate.

:mod:`.survey_layout` shows it.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image

from mmclca.datasets.batches import read_image
from mmclca.errors import Error
from mmclca.fitting.record import FitRecord
from mmclca.languages import text
from mmclca.survey.classify import ClassifiedFolder, classify_photos
from mmclca.survey.drawing import draw_photos
from mmclca.survey.measuring import measure_labels
from mmclca.survey.table import MIN_LABELS, DrawnPhoto, LabeledTable
from mmclca.survey.text import NONE, survey_rows

from .handlers import shown_problems
from .identify import IdentifyTab
from .loaded_model import ModelVersion
from .markdown import escape_markdown, list_facts
from .photos import make_preview
from .uploads import opened

MAX_LABELS = 200  # their previews are kept in memory


@dataclass(frozen=True)
class SurveyState:
    """Survey by a visitor.

    Args:
        title (str): Name for the uploaded folder.
        folder (ClassifiedFolder): Classified photos, whose files are deleted.
        record (FitRecord): Record for the model.
        photos (tuple[DrawnPhoto, ...]): Drawn photos with their labels.
        previews (tuple[Image.Image, ...]): Their pictures.
        notes (tuple[str, ...]): Remarks on the upload.
        position (int): Shown photo; the number of photos at the end.
    """

    title: str
    folder: ClassifiedFolder
    record: FitRecord
    photos: tuple[DrawnPhoto, ...]
    previews: tuple[Image.Image, ...]
    notes: tuple[str, ...]
    position: int = 0

    @property
    def labeled(self) -> int:
        """Number of photos with a label."""
        return sum(bool(photo.label) for photo in self.photos)

    @property
    def is_complete(self) -> bool:
        """Whether all photos were shown."""
        return self.position >= len(self.photos)

    @property
    def choices(self) -> dict[str, str]:
        """Labels to select by their titles: classes, and one for others."""
        choices = {name: name for name in self.folder.classes}
        return choices | {text('survey.none'): NONE}

    def label(self, name: str) -> 'SurveyState':
        """Label the shown photo, and show the next one; '' skips it."""
        if self.is_complete or name not in (*self.choices.values(), ''):
            return self
        photos = [*self.photos]
        photos[self.position] = replace(photos[self.position], label=name)
        return replace(self, photos=tuple(photos), position=self.position + 1)

    def go_back(self) -> 'SurveyState':
        """Show the previous photo again."""
        return replace(self, position=max(0, self.position - 1))

    def describe_progress(self) -> str:
        """Describe the position and the labels, in Markdown."""
        total = len(self.photos)
        notes = [escape_markdown(note) for note in self.notes]
        state = text('page.survey.labeled', number=self.labeled, count=total)
        if not self.is_complete:
            state = text(
                'page.survey.position',
                number=self.position + 1,
                count=total,
                state=state,
            )
        if self.labeled < MIN_LABELS:
            state = text('page.survey.needed', state=state, needed=MIN_LABELS)
        return '\n\n'.join([*notes, state])

    def estimate(self) -> str:
        """Describe accuracy and class counts, in Markdown.

        Raises:
            Error: If there are fewer than 10 labels.
        """
        if self.labeled < MIN_LABELS:
            raise Error(
                text(
                    'page.survey.too_few',
                    number=self.labeled,
                    needed=MIN_LABELS,
                )
            )
        table = LabeledTable(Path(self.title), [*self.photos], [], [])
        survey = measure_labels(self.folder, table)
        # the path of the deleted copy means nothing
        survey = replace(
            survey, folder=replace(self.folder, path=Path(self.title))
        )
        return list_facts(survey_rows(survey, self.record))


class SurveyTab:
    """Event handlers for the tab.

    Args:
        identify_tab (IdentifyTab): Tab with the model and the uploads.
    """

    def __init__(self, identify_tab: IdentifyTab):
        self.identify_tab = identify_tab

    def draw(
        self,
        upload: list | None,
        paths: str,
        number: float | None,
        version: ModelVersion | None = None,
    ) -> SurveyState | None:
        """Classify an uploaded folder or ZIP archive, and draw photos.

        The photos are deleted, except the previews of drawn ones. If they
        cannot be used, warn and return None.
        """
        with shown_problems():
            return self._draw(upload, paths, number, version)
        return None

    def _draw(
        self,
        upload: list | None,
        paths: str,
        number: float | None,
        version: ModelVersion | None,
    ) -> SurveyState:
        model = self.identify_tab.require_model(version)
        files = model.require_files()
        if number is None or not MIN_LABELS <= number <= MAX_LABELS:
            raise Error(
                text('page.survey.number', low=MIN_LABELS, high=MAX_LABELS)
            )
        record = files.read_complete()
        with opened(upload, paths, self.identify_tab.uploads) as photos:
            folder = classify_photos(files, model.inferencer, photos.path)
            folder = replace(
                folder,
                unreadable={
                    Path(path).name: reason
                    for path, reason in folder.unreadable.items()
                },
            )
            drawn = [
                replace(photo, path=str(folder.path / photo.path))
                for photo in draw_photos(folder, round(number))
            ]
            previews = [
                make_preview(Image.fromarray(read_image(x.path)[..., ::-1]))
                for x in drawn
            ]
            return SurveyState(
                title=photos.title,
                folder=folder,
                record=record,
                photos=tuple(drawn),
                previews=tuple(previews),
                notes=tuple(photos.notes),
            )
