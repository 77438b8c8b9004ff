# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Handlers to change a trained model.

Changes run in a separate process, as the commands do them.
:mod:`.growth_layout` shows them.
"""

from pathlib import Path

from mmclca.errors import Error
from mmclca.languages import text

from .form import FitForm, FormView
from .handlers import shown_problems
from .limits import MAX_MEGABYTES
from .marked import MarkedPhotos, list_marked
from .models import KeptModel
from .uploads import read_paths, resolve_upload


class Growth:
    """Event handlers to change a model in the form.

    Each returns new values for the form.

    Args:
        form (FitForm): The form.
    """

    def __init__(self, form: FitForm):
        self.form, self.store, self.job = form, form.store, form.job

    def add_photos(
        self, upload: list | None, paths: str, label: str | None, name: str
    ) -> FormView:
        """Add an uploaded folder or ZIP archive to a model.

        Args:
            upload (list | None): Messages from the browser.
            paths (str): Paths in the browser, as JSON.
            label (str | None): Class for all photos; empty if folders name it.
            name (str): Model.
        """
        files: list[Path] = []
        with shown_problems():
            model = self._require_idle(name)
            folder = self.form.identify_tab.uploads
            for entry in upload or [None]:
                files.append(resolve_upload(entry, folder, MAX_MEGABYTES))
            label = label.strip() if isinstance(label, str) else ''
            labels = model.add_photos(files, read_paths(paths), label)
            source = str(model.added)
            self._start(model, 'add_photos', labels=labels, source=source)
        for file in files:
            file.unlink(missing_ok=True)
        return self.form.show(name)

    def remove_class(self, label: str | None, name: str) -> FormView:
        """Remove a class."""
        with shown_problems():
            model = self._require_idle(name)
            self._start(model, 'remove_class', name=_require_class(label))
        return self.form.show(name)

    def rename_class(
        self, label: str | None, new: str | None, name: str
    ) -> FormView:
        """Rename a class, or join it to another one."""
        with shown_problems():
            model, label = self._require_idle(name), _require_class(label)
            new = new.strip() if isinstance(new, str) else ''
            if not new:
                raise Error(text('page.type_class'))
            self._start(model, 'rename_class', name=label, new=new)
        return self.form.show(name)

    def list_marked(self, name: str) -> MarkedPhotos:
        """List the photos that the report marks."""
        with shown_problems():
            return list_marked(self._require_idle(name))
        return MarkedPhotos()

    def correct(
        self, corrections: dict[str, str | None], name: str
    ) -> FormView:
        """Move photos to other classes, or remove them (None)."""
        with shown_problems():
            model = self._require_idle(name)
            if not corrections:
                raise Error(text('page.correct_first'))
            self._start(model, 'move_photos', labels=corrections)
        return self.form.show(name)

    def undo(self, name: str) -> FormView:
        """Exchange the model with the one before the last change."""
        with shown_problems():
            self._start(self._require_idle(name), 'undo')
        return self.form.show(name)

    def confirm(self, name: str) -> FormView:
        """Do a change after its confirmation."""
        with shown_problems():
            if name == self.job.name:
                self.job.confirm()
        return self.form.show(name)

    def dismiss(self, name: str) -> FormView:
        """Do not do a change: it was not confirmed."""
        if name == self.job.name:
            self.job.dismiss()
        return self.form.show(name)

    def rename_model(self, new: str | None, name: str) -> FormView:
        """Rename a model."""
        with shown_problems():
            model = self._require_idle(name)
            self.store.rename(model, new.strip() if new else '')
            if self.job.name == name:
                self.job.name = model.name
            name = model.name
        return self.form.show(name)

    def delete_model(self, name: str) -> FormView:
        """Delete a model with its photos."""
        with shown_problems():
            self.store.delete(self._require_idle(name))
            return self.form.show(None)
        return self.form.show(name)

    def _require_idle(self, name: str) -> KeptModel:
        """Return a model; refuse one in work or without photos."""
        model = self.store.find(name)
        if self.job.is_running and self.job.name == model.name:
            raise Error(text('page.in_work', name=model.name))
        if not model.has_photos:
            raise Error(text('page.choose_model'))
        return model

    def _start(self, model: KeptModel, change: str, **settings) -> None:
        """Start to change a trained model."""
        model.require_ready()
        task_settings = dict(
            folder=str(model.files.path),
            change=change,
            force=False,
            settings=settings,
        )
        self.job.start(model.name, task_settings, 'change')


def _require_class(label: str | None) -> str:
    if not isinstance(label, str) or not label:
        raise Error(text('page.choose_class'))
    return label
