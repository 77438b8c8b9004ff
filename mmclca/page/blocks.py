# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Web page layout: its tabs, and their update for another model."""

from dataclasses import dataclass

import gradio as gr

from .accuracy import AccuracyTab
from .accuracy_layout import AccuracyComponents, build_accuracy
from .batch import BatchTab
from .batch_layout import BatchComponents, build_batch
from .explore import build_explore
from .form import FitForm
from .form_layout import FormComponents, build_form
from .handlers import bind
from .identify import IdentifyTab
from .identify_layout import PhotoComponents, build_identify
from .language import label
from .loaded_model import ModelVersion
from .survey import SurveyTab
from .survey_layout import SurveyComponents, build_survey

TITLE = 'mmclca'  # in all languages
# as many columns as fit, also on a phone; all similar photos; notes as dark as
# titles; columns of the log are aligned; the paths of form.js are hidden
CSS = (
    '.grid-container { grid-template-columns: '
    'repeat(auto-fill, minmax(130px, 1fr)) !important } '
    '#similar .grid-wrap { min-height: 0; max-height: none } '
    '.gradio-container { --block-info-text-color: '
    'var(--block-title-text-color) } '
    '#log textarea { font-family: var(--font-mono) } '
    '.paths { display: none !important }'
)


def build_page(
    identify_tab: IdentifyTab, form: FitForm | None = None
) -> gr.Blocks:
    """Build the page of a model, with a form to fit it."""
    # delete uploads older than an hour, every ten minutes
    with gr.Blocks(
        title=TITLE, analytics_enabled=False, delete_cache=(600, 3600)
    ) as page:
        version = gr.State()  # the visitor's model, chosen in the form
        with gr.Tabs() as tabs:
            if form:
                with gr.Tab(label('label.train.tab'), id='train'):
                    parts = build_form(form, version)
            model_tabs = build_tabs(identify_tab, version)
        bind(
            page.load,
            model_tabs.show_model,
            [version],
            model_tabs.shown,
            queue=False,
        )
        if form:
            _bind_form(page, tabs, form, parts)
            bind(
                version.change, model_tabs.show, [version], model_tabs.outputs
            )
    return page


def _bind_form(
    page: gr.Blocks, tabs: gr.Tabs, form: FitForm, parts: FormComponents
) -> None:
    """Show the last training in a new tab; open the first tab of a model."""

    def load() -> dict:
        return parts.show_loaded(form.load())

    def select_identify() -> dict:
        return {tabs: gr.Tabs(selected='identify')}

    bind(page.load, load, [], parts.outputs)
    bind(parts.attempt.click, select_identify, [], [tabs])


@dataclass(frozen=True)
class ModelTabs:
    """Tabs of a model.

    Args:
        identify_tab (IdentifyTab): Handlers of the first tab.
        photo (PhotoComponents): Components of the first tab.
        about (gr.Textbox): Name, classes and accuracy of the model.
        batch (BatchComponents): Components of the second tab.
        many (gr.Tab): Second tab, for model folders.
        accuracy (AccuracyComponents): Components of the third tab.
        test (gr.Tab): Third tab, for model folders.
        survey (SurveyComponents): Components of the fourth tab.
        survey_tab (gr.Tab): Fourth tab, for model folders.
        explore (gr.Tab): Last tab, for models with token reduction.
    """

    identify_tab: IdentifyTab
    photo: PhotoComponents
    about: gr.Textbox
    batch: BatchComponents
    many: gr.Tab
    accuracy: AccuracyComponents
    test: gr.Tab
    survey: SurveyComponents
    survey_tab: gr.Tab
    explore: gr.Tab

    @property
    def shown(self) -> list:
        """Components that describe a model."""
        return [
            self.photo.among,
            self.about,
            self.many,
            self.test,
            self.survey_tab,
            self.explore,
        ]

    @property
    def outputs(self) -> list:
        """Components with values for a model."""
        return [
            *self.photo.outputs,
            *self.batch.outputs,
            *self.accuracy.outputs,
            *self.survey.outputs,
            *self.shown,
        ]

    def show(self, version: ModelVersion | None) -> dict:
        """Return new values by component for another model."""
        return {
            **self.photo.clear(),
            **self.batch.clear(),
            **self.accuracy.clear(),
            **self.survey.clear(),
            **self.show_model(version),
        }

    def show_model(self, version: ModelVersion | None) -> dict:
        """Return the description of a model; photos in the tabs stay.

        A photo may be dropped before the page has loaded.
        """
        model = self.identify_tab.find_model(version)
        has_record = bool(model and model.files)
        return {
            **self.photo.show_classes(
                model.inferencer.classes if model else []
            ),
            self.about: model and model.about,
            self.many: gr.Tab(visible=has_record),
            self.test: gr.Tab(visible=has_record),
            self.survey_tab: gr.Tab(visible=has_record),
            self.explore: gr.Tab(visible=bool(model and model.can_reduce)),
        }


def build_tabs(identify_tab: IdentifyTab, version: gr.State) -> ModelTabs:
    """Create the tabs of a model in the current ``gr.Tabs``."""
    with gr.Tab(label('label.identify.tab'), id='identify'):
        gr.Markdown(label('label.identify.heading'))
        photo = build_identify(identify_tab, version)
        about = gr.Textbox(
            label=label('label.identify.model'),
            interactive=False,
            elem_id='model',
        )
    with gr.Tab(label('label.many.tab'), visible=False, id='batch') as many:
        batch = build_batch(BatchTab(identify_tab), version)
    with gr.Tab(label('label.test.tab'), visible=False, id='test') as test:
        accuracy = build_accuracy(AccuracyTab(identify_tab), version)
    with gr.Tab(
        label('label.survey.tab'), visible=False, id='survey'
    ) as survey_tab:
        survey = build_survey(SurveyTab(identify_tab), version)
    with gr.Tab(label('label.explore.tab'), visible=False) as explore:
        build_explore(photo.plant, explore)
    return ModelTabs(
        identify_tab=identify_tab,
        photo=photo,
        about=about,
        batch=batch,
        many=many,
        accuracy=accuracy,
        test=test,
        survey=survey,
        survey_tab=survey_tab,
        explore=explore,
    )
