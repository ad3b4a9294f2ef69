"""Pages that are a form in a frame."""

from __future__ import annotations

from typing import ClassVar

from textual.containers import Vertical
from textual.widget import Widget

from dld_tui.core.errors import DldError
from dld_tui.styles import STYLES
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import Page


class FormBox(Framed, Vertical):
    """The frame of a form."""


class FormPage(Page):
    """Base of the pages with a form; the fact ``valid`` means that no field has an error."""

    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "form.tcss"

    def boxed(self, title: str, keys: str, form: ParamForm, *below: Widget) -> FormBox:
        """Return the frame with the form, and what is below it."""
        box = FormBox(form, *below)
        box.frame.show(title, keys)
        return box

    @property
    def form(self) -> ParamForm:
        """The form."""
        return self.query_one(ParamForm)

    def on_mount(self) -> None:
        """Go to the first field."""
        self.form.focus_first()

    def facts(self) -> set[str]:
        forms = self.query(ParamForm)
        return super().facts() | ({"valid"} if forms and forms.first().valid else set())

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Grey what cannot be done while something is wrong."""
        self.refresh_bindings()

    def action_next_page(self) -> None:
        self.form.step_page(1)

    def action_previous_page(self) -> None:
        self.form.step_page(-1)

    saved = ""
    """The name under which it was saved; empty when it was not."""

    def save(self) -> str:
        """Save what the form says, and return its name; empty where it is not saved yet.

        Raises:
            DldError: It cannot be saved: the form stays.
        """
        raise NotImplementedError

    def action_save(self) -> None:
        try:
            self.saved = self.save()
        except DldError as error:
            host(self).show_error(error)
        else:
            if self.saved:
                self.dismiss(None)
