"""Pages that are a form in a frame."""

from __future__ import annotations

from abc import abstractmethod

from textual.containers import Vertical
from textual.widget import Widget

from dld_tui.core.errors import DldError
from dld_tui.styles import STYLES
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.shell.frame import Frame
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import SubPage


class FormBox(Frame, Vertical):
    """The frame of a form."""


class FormPage(SubPage):
    """Base of the pages with a form; the fact ``valid`` says that nothing is wrong in it."""

    CSS_PATH = STYLES / "form.tcss"

    def boxed(self, title: str, keys: str, form: ParamForm, *below: Widget) -> FormBox:
        """Return the frame with the form, and what is below it."""
        box = FormBox(form, *below)
        box.frame(title, keys)
        return box

    @property
    def form(self) -> ParamForm:
        """The form."""
        return self.query_one(ParamForm)

    def on_mount(self) -> None:
        """Go to the first field."""
        self.form.focus_first()

    def facts(self) -> set[str]:
        """Return whether the form may be used."""
        forms = self.query(ParamForm)
        return super().facts() | ({"valid"} if forms and forms.first().valid else set())

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Grey what cannot be done while something is wrong."""
        self.refresh_bindings()

    def action_next_page(self) -> None:
        """Show the next page of settings."""
        self.form.step_page(1)

    def action_previous_page(self) -> None:
        """Show the previous page of settings."""
        self.form.step_page(-1)


class SavingForm(FormPage):
    """A form of one of several things with names; F5 saves it."""

    saved = ""
    """The name under which it was saved; empty when it was not."""

    @abstractmethod
    def save(self) -> str:
        """Save what the form says and return its name.

        Raises:
            DldError: It cannot be saved so.
        """

    def action_save(self) -> None:
        """Save, or say what is wrong."""
        try:
            self.saved = self.save()
        except DldError as error:
            host(self).show_error(error)
            return
        self.dismiss(None)
