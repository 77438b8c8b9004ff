# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Components for the survey of new photos."""

from dataclasses import dataclass

import gradio as gr

from mmclca.survey.table import MIN_LABELS

from .folder_input import FolderInput, create_folder_input
from .handlers import QUEUE, bind, shown_problems
from .language import label
from .loaded_model import ModelVersion
from .survey import MAX_LABELS, SurveyState, SurveyTab


@dataclass(frozen=True)
class SurveyComponents:
    """Components of the tab, in the order of the page.

    ``survey`` is the :class:`.SurveyState`.
    """

    source: gr.Accordion
    number: gr.Number
    photos: FolderInput
    progress: gr.Markdown
    photo: gr.Image
    name: gr.Dropdown
    skip: gr.Button
    back: gr.Button
    estimate: gr.Button
    result: gr.Markdown
    survey: gr.State

    @property
    def outputs(self) -> list:
        """Components with values for a survey."""
        return [
            self.source,
            self.photos.folder,
            self.progress,
            self.photo,
            self.name,
            self.skip,
            self.back,
            self.estimate,
            self.result,
            self.survey,
        ]

    def show(self, survey: SurveyState | None, result: str = '') -> dict:
        """Return new values by component."""
        is_open = survey is not None and not survey.is_complete
        progress, picture = '', None
        choices: dict[str, str] = {}
        if survey is not None:
            progress, choices = survey.describe_progress(), survey.choices
        if survey is not None and not survey.is_complete:
            picture = survey.previews[survey.position]
        can_estimate = survey is not None and survey.labeled >= MIN_LABELS
        return {
            self.source: gr.Accordion(open=survey is None),
            self.photos.folder: None,
            self.progress: progress,
            self.photo: gr.Image(picture, visible=is_open),
            self.name: gr.Dropdown(
                [*choices.items()], value=None, visible=is_open
            ),
            self.skip: gr.Button(visible=is_open),
            self.back: gr.Button(visible=survey is not None),
            self.estimate: gr.Button(visible=can_estimate and not result),
            self.result: result,
            self.survey: survey,
        }

    def clear(self) -> dict:
        """Return empty values, by component."""
        return self.show(None)


def build_survey(tab: SurveyTab, version: gr.State) -> SurveyComponents:
    """Create the components in the current tab, and bind their events.

    ``version`` is the key for the chosen model.
    """
    parts = _create_components()

    def draw(
        upload: list | None,
        paths: str,
        number: float | None,
        chosen: ModelVersion | None,
    ) -> dict:
        return parts.show(tab.draw(upload, paths, number, chosen))

    def name_class(survey: SurveyState | None, name: str | None) -> dict:
        if survey is None:
            return parts.clear()
        survey = survey.label(name or '')
        if survey.is_complete and survey.labeled >= MIN_LABELS:
            return parts.show(survey, survey.estimate())
        return parts.show(survey)

    def skip(survey: SurveyState | None) -> dict:
        return name_class(survey, '')

    def go_back(survey: SurveyState | None) -> dict:
        return parts.show(survey and survey.go_back())

    def estimate(survey: SurveyState | None) -> dict:
        result = ''
        with shown_problems():
            result = survey.estimate() if survey is not None else ''
        return parts.show(survey, result)

    parts.photos.bind_model(draw, [parts.number, version], parts.outputs)
    inputs = [parts.survey, parts.name]
    for event, handler in (
        (parts.name.select, name_class),
        (parts.skip.click, skip),
        (parts.back.click, go_back),
        (parts.estimate.click, estimate),
    ):
        bind(
            event,
            handler,
            inputs if handler is name_class else inputs[:1],
            parts.outputs,
            concurrency_id=QUEUE,
            concurrency_limit=1,
            # a second choice would label a photo that is not yet shown
            trigger_mode='once',
        )
    return parts


def _create_components() -> SurveyComponents:
    """Create the components in the current tab."""
    gr.Markdown(label('label.survey.introduction'))
    with gr.Accordion(
        label('label.choose_photos'), elem_id='survey_source'
    ) as source:
        number = gr.Number(
            30,
            label=label('label.survey.number'),
            minimum=MIN_LABELS,
            maximum=MAX_LABELS,
            precision=0,
            elem_id='survey_number',
        )
        photos = create_folder_input('surveyed', 'surveyed_zip')
    progress = gr.Markdown(elem_id='survey_progress')
    photo = gr.Image(
        show_label=False,
        interactive=False,
        visible=False,
        height=400,
        buttons=[],
        elem_id='survey_photo',
    )
    name = gr.Dropdown(
        label=label('label.survey.class'),
        visible=False,
        elem_id='survey_class',
    )
    with gr.Row():
        skip = gr.Button(label('label.survey.skip'), visible=False)
        back = gr.Button(label('label.survey.back'), visible=False)
        estimate = gr.Button(label('label.survey.estimate'), visible=False)
    result = gr.Markdown(elem_id='survey_result')
    return SurveyComponents(
        source=source,
        number=number,
        photos=photos,
        progress=progress,
        photo=photo,
        name=name,
        skip=skip,
        back=back,
        estimate=estimate,
        result=result,
        survey=gr.State(),
    )
